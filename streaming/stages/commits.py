"""Commits, told in columns: a batch may hold one for every change.

Told is one as connectors/wire.py writes it; whatever else there is, is left to the rules.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.record import Kind
from streaming.stages.facts import Bools, Ints, Texts, bools, ints, texts
from streaming.stages.plain import VERSION, Limits

_COMMIT = (
    rf'\A\{{"v":{VERSION},"kind":"{Kind.COMMIT}","session":"(?P<session>[ !#-\[\]-~]+)",'
    r'"prim_csn":"(?P<prim_csn>[0-9a-f]{20})"\}\z'
)


def commits(found: pa.Table, limits: Limits) -> tuple[pa.Table, pa.Table]:
    """(the facts of plain commits, all others as they are), of FACTS to be settled."""
    said = pc.extract_regex(found["value"], _COMMIT)
    written = bools(pc.is_valid(said))
    prim_csn = texts(pc.struct_field(said, "prim_csn").cast(pa.string()))
    good = pa.array(written & is_good(found, prim_csn, limits))
    there, told = found.filter(good), said.filter(good)
    columns = {
        **{name: there[name] for name in found.column_names},
        **{name: pc.struct_field(told, name) for name in ("session", "prim_csn")},
        "reason": pa.nulls(len(told)),
        "kind": pa.repeat(Kind.COMMIT.value, len(told)),
    }
    return pa.table(columns).cast(found.schema), found.filter(pc.invert(good))


def is_good(found: pa.Table, prim_csn: Texts, limits: Limits) -> Bools:
    """Mark what is not too large, of its topic's replica and not too far ahead of its time."""
    small = bools(pc.less_equal(pc.binary_length(found["value"]), limits.record_bytes))
    own = _number(prim_csn, 12, 16) == ints(found["rid"])
    time_s = ints(found["time"].cast(pa.int64())) // 1_000_000
    in_time = _number(prim_csn, 0, 8) - limits.skew_s <= time_s
    return np.asarray(small & own & in_time, dtype=np.bool_)


def _number(csn: Texts, start: int, end: int) -> Ints:
    """The number that these hex digits of each CSN are; any where it is none."""
    codes = csn.view(np.uint8).reshape(len(csn), csn.itemsize)[:, start:end].astype(np.int64)
    digits = np.where(codes > ord("9"), codes - ord("a") + 10, codes - ord("0"))
    return np.asarray(digits @ (16 ** np.arange(end - start)[::-1]), dtype=np.int64)
