"""Validate: each record gets the first rule that it breaks, or its facts in canonical text."""

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streaming.core.change import (
    CONTENT_DIGITS,
    CONTENT_FIELDS,
    FIELD_SEPARATOR,
    NULL_TEXT,
    Op,
)
from streaming.core.csn import MAX_SKEW_S
from streaming.core.record import Kind, Reason
from streaming.core.table import Table
from streaming.stages import pattern, tokens
from streaming.stages.parse import FIELDS, OBJECTS
from streaming.stages.rules import is_kind, rules

VERSION = 1
RECORD_BYTES = 1_000_000

FACTS = (
    *("rid", "offset", "time", "reason", "detail", "kind", "session", "csn", "prim_csn", "epoch"),
    *("table", "key", "op", "before", "after", "opno", "content", "partial", "value"),
)
"""The columns that the driver decides by, in this order."""


def validate(
    parsed: DataFrame,
    tables: Mapping[str, Table],
    *,
    hub_version: int = VERSION,
    record_bytes: int = RECORD_BYTES,
    skew_s: int = MAX_SKEW_S,
) -> DataFrame:
    """What `parse` gives as FACTS: `reason` is the first rule that the record breaks, or null.

    Of a good change key and images are canonical text and `value` is null; every other record
    keeps its bytes. `partial`: the after-image lacks columns. `content` is core's Change.content.
    """
    broken = rules(hub_version, record_bytes, skew_s)
    faults = {f"_{reason}": fault for reason, fault in broken.items()}
    return (
        parsed.withColumn("_canonical", _is_canonical(tables))
        .withColumn("_looked", _looked(tables))
        .withColumns(faults)
        .withColumns({"reason": _first_of(broken), "detail": F.coalesce(*map(F.col, faults))})
        .withColumn("_mended", _mended())
        .withColumns({**_images(), "partial": _is_partial(), "value": _kept_value()})
        .withColumn("content", _content())
        .select(*[_known(name) for name in FACTS])
    )


def _first_of(reasons: Iterable[Reason]) -> Column:
    broken = [F.when(F.col(f"_{reason}").isNotNull(), F.lit(reason.value)) for reason in reasons]
    return F.coalesce(*broken)


def _is_canonical(tables: Mapping[str, Table]) -> Column:
    fields = [F.col(name) for name in ("table", "key", "after", "before")]
    return F.when(is_kind(Kind.CHANGE), pattern.is_canonical(tables, *fields))


def _looked(tables: Mapping[str, Table]) -> Column:
    """The tokens of a change that is not canonical as it came; null for all others."""
    key = F.when(F.col("op") != Op.TRUNCATE.value, F.col("key"))
    looked = tokens.look(tables, F.col("table"), key, F.col("after"), F.col("before"))
    return F.when(is_kind(Kind.CHANGE) & ~F.col("_canonical"), looked)


def _mended() -> Column:
    good = F.col("_looked").isNotNull() & F.col("reason").isNull()
    return F.when(good, tokens.canonical(F.col("_looked")))


def _images() -> dict[str, Column]:
    """Key and images: as they came where they are canonical or past mending, else canonical."""
    mended = F.col("_mended")
    return {
        name: F.when(mended.isNotNull(), mended[name]).otherwise(F.col(name)) for name in OBJECTS
    }


def _is_partial() -> Column:
    upsert = F.col("op").isin(Op.INSERT, Op.UPDATE)
    return F.coalesce(upsert & F.col("_mended.partial"), F.lit(False))  # noqa: FBT003


def _kept_value() -> Column:
    good_change = F.col("reason").isNull() & is_kind(Kind.CHANGE)
    return F.when(~good_change, F.col("value"))


def _content() -> Column:
    parts = [F.coalesce(F.col(name).cast("string"), F.lit(NULL_TEXT)) for name in CONTENT_FIELDS]
    digits = F.substring(F.sha2(F.concat_ws(FIELD_SEPARATOR, *parts), 256), 1, CONTENT_DIGITS)
    return F.when(is_kind(Kind.CHANGE) & F.col("csn").isNotNull(), digits)


def _known(name: str) -> Column:
    """A fact; nothing is known of what is no JSON but its bytes."""
    if name not in {*FIELDS, "content"}:
        return F.col(name)
    return F.when(F.col("well_formed"), F.col(name)).alias(name)
