"""Commits, told in columns: a batch may hold one for every change.

Told is one as connectors/wire.py writes it; whatever else there is, is left to the rules.
"""

import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.model.record import RecordKind
from streaming.stages.checked import bools, texts
from streaming.stages.plain import VERSION, Limits, are_of_record

_COMMIT = (
    rf'\A\{{"v":{VERSION},"kind":"{RecordKind.COMMIT}","session":"(?P<session>[ !#-\[\]-~]+)",'
    r'"prim_csn":"(?P<prim_csn>[0-9a-f]{20})"\}\z'
)


def commits(found: pa.Table, limits: Limits) -> tuple[pa.Table, pa.Table]:
    """(the facts of plain commits, all others as they are), of CHECKED to be settled."""
    received = pc.extract_regex(found["value"], _COMMIT)
    written = bools(pc.is_valid(received))
    prim_csn = texts(pc.struct_field(received, "prim_csn").cast(pa.string()))
    good = pa.array(written & are_of_record(found, prim_csn, limits))
    there, told = found.filter(good), received.filter(good)
    columns = {
        **{name: there[name] for name in found.column_names},
        **{name: pc.struct_field(told, name) for name in ("session", "prim_csn")},
        "reason": pa.nulls(len(told)),
        "kind": pa.repeat(RecordKind.COMMIT.value, len(told)),
    }
    return pa.table(columns).cast(found.schema), found.filter(pc.invert(good))
