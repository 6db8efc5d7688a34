"""Plain: what nearly every record is, told by a few comparisons: surely good as it came.

A change with canonical text, or an ordinary control record. Whatever is not plain may still be
good; it is asked rule by rule (stages/rules.py).
"""

from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from streaming.core.model.change import Op
from streaming.core.model.csn import MAX_SKEW_S
from streaming.core.model.record import RECORD_BYTES, RecordKind
from streaming.stages.checked import Bools, Ints, Texts, bools, ints
from streaming.stages.parse import raw

CSN = r"\A[0-9a-f]{20}\z"

VERSION = 1
"""The wire's newest version that this hub reads."""

_LINE = (
    r'" *+(?:\{replicageneration\}[^"]*+|(?i:\{replica ++[0-9]++(?: ++[^} "]++)? *+\}'
    r'(?: *+[0-9a-f]{20}(?: ++[0-9a-f]{20})?(?: ++[0-9a-f]{8})?)? *+))"'
)
RUV = rf"\A\[(?:{_LINE}(?:,{_LINE})*+)?\]\z"
"""The text of an array of lines in 389 form; core's parse_ruv has the last word."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a record may be at most: its wire version, its bytes, its CSN ahead of its time."""

    version: int = VERSION
    record_bytes: int = RECORD_BYTES
    skew_s: int = MAX_SKEW_S


LIMITS = Limits()


def is_plain(fits: Column, limits: Limits) -> Column:
    """Claim that no rule is broken, for a record whose key and images fit if it is a change."""
    kind = F.col("kind")
    of_its_kind = (
        F.when(kind == RecordKind.CHANGE.value, _change(limits) & fits)
        .when(kind == RecordKind.APPLIED.value, _position())
        .when(kind == RecordKind.HEARTBEAT.value, F.col("epoch") >= 0)
        .when(kind == RecordKind.HELLO.value, _position() & F.col("lost").isNotNull() & _own())
        .when(is_kind(RecordKind.COMMIT, RecordKind.ABORT), _good_csn(F.col("prim_csn"), limits))
    )
    claims = [
        F.col("well_formed"),
        ~F.col("mistyped"),
        F.col("v").between(1, limits.version),
        F.octet_length("value") <= limits.record_bytes,
        (F.col("session") != "") & stands_quoted(F.col("session")),
        of_its_kind,
    ]
    return F.coalesce(reduce(and_, claims), F.lit(False))  # noqa: FBT003


def is_kind(*kinds: RecordKind) -> Column:
    """Claim that the record is of one of these kinds."""
    return F.col("kind").isin(*kinds)


def rid_of(csn: Column) -> Column:
    """The replica id in a CSN; null or any number if it is none."""
    return F.conv(F.substring(csn, 13, 4), 16, 10).try_cast("int")


def time_ms_of(csn: Column) -> Column:
    """The time in a CSN; null or any number if it is none."""
    return F.conv(F.substring(csn, 1, 8), 16, 10).try_cast("bigint") * 1000


def is_of_record(csn: Column, limits: Limits) -> Column:
    """Claim that a CSN is of the record's replica, and not too far ahead of the record's time."""
    in_time = time_ms_of(csn) - limits.skew_s * 1000 <= F.unix_millis("time")
    return (rid_of(csn) == F.col("rid")) & in_time


def are_of_record(found: pa.Table, csn: Texts, limits: Limits) -> Bools:
    """`is_of_record` on the driver, and the size limit; `found`: CHECKED."""
    small = bools(pc.less_equal(pc.binary_length(found["value"]), limits.record_bytes))
    own = _number(csn, 12, 16) == ints(found["rid"])
    time_s = ints(found["time"].cast(pa.int64())) // 1_000_000
    in_time = _number(csn, 0, 8) - limits.skew_s <= time_s
    return np.asarray(small & own & in_time, dtype=np.bool_)


def _number(csn: Texts, start: int, end: int) -> Ints:
    """The number that these hex digits of each CSN are; any where it is none."""
    codes = csn.view(np.uint8).reshape(len(csn), csn.itemsize)[:, start:end].astype(np.int64)
    digits = np.where(codes > ord("9"), codes - ord("a") + 10, codes - ord("0"))
    return np.asarray(digits @ (16 ** np.arange(end - start)[::-1]), dtype=np.int64)


def stands_quoted(text: Column) -> Column:
    """Claim that the record has this text as a string, so that it was no number."""
    return raw().contains(F.concat(F.lit('"'), text, F.lit('"')))


def _change(limits: Limits) -> Column:
    csn, prim_csn, op, after = (F.col(name) for name in ("csn", "prim_csn", "op", "after"))
    upsert, opno = op.isin(Op.INSERT, Op.UPDATE), F.col("opno")
    return (
        (F.col("epoch") >= 0)
        & (opno.isNull() | (opno > 0))
        & F.when(upsert, after.isNotNull()).otherwise((op == Op.DELETE.value) & after.isNull())
        & _good_csn(csn, limits)
        & (prim_csn.isNull() | (prim_csn == csn) | _good_csn(prim_csn, limits))
    )


def _good_csn(csn: Column, limits: Limits) -> Column:
    return csn.rlike(CSN) & stands_quoted(csn) & is_of_record(csn, limits)


def _position() -> Column:
    counters = (F.col(name) >= 0 for name in ("epoch", "covers", "generation"))
    return reduce(and_, counters) & F.col("ruv").rlike(RUV)


def _own() -> Column:
    own = F.col("own")
    return own.isNull() | (own.rlike(CSN) & stands_quoted(own) & (rid_of(own) == F.col("rid")))
