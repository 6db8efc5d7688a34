"""Validate: each record gets the first rule that it breaks, or its facts in canonical text."""

from collections.abc import Mapping
from functools import lru_cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streaming.core.model.change import (
    CONTENT_DIGITS,
    CONTENT_FIELDS,
    FIELD_SEPARATOR,
    NULL_TEXT,
    Op,
)
from streaming.core.model.record import RecordKind
from streaming.core.model.table import ColumnType, Table
from streaming.stages import pattern, tokens
from streaming.stages.checked import CHECKED
from streaming.stages.parse import FIELDS, OBJECTS
from streaming.stages.plain import LIMITS, Limits, is_kind, is_plain
from streaming.stages.rules import SEPARATOR, fault

Known = tuple[tuple[str, tuple[str, ...], tuple[tuple[str, ColumnType], ...]], ...]
"""Tables by value."""


def validate(parsed: DataFrame, tables: Mapping[str, Table], limits: Limits = LIMITS) -> DataFrame:
    """What `parse` gives as CHECKED: `reason` is the first rule that the record breaks, or null.

    Of a good change key and images are canonical text and `value` is null; every other record
    keeps its bytes. `partial`: the after-image lacks columns. `content` is core's Change.content.
    """
    known = known_tables(tables)
    looked_at = parsed.withColumn("form", form(known)).withColumn("closer", _closer(known, limits))
    return looked_at.withColumns(_judged()).select(*facts_columns())


def known_tables(tables: Mapping[str, Table]) -> Known:
    """Tables as something to remember expressions by: making these takes long."""
    return tuple((t.name, t.key, tuple(t.columns.items())) for t in tables.values())


@lru_cache(maxsize=8)
def form(known: Known) -> Column:
    """Of a change that is canonical as it came: pattern.WHOLE or pattern.PARTIAL; else null."""
    texts = (F.col(name) for name in ("table", "key", "after", "before"))
    return F.when(is_kind(RecordKind.CHANGE), pattern.form(tables_of(known), *texts))


@lru_cache(maxsize=1)
def facts_columns() -> list[Column]:
    """CHECKED from the fields, `well_formed`, `fault` and `partial`.

    Of what is no JSON nothing is known but its place, time and bytes.
    """
    well_formed, fault_ = F.col("well_formed"), F.col("fault")
    change = F.col("kind") == RecordKind.CHANGE.value
    good_change = F.coalesce(change & fault_.isNull(), F.lit(False))  # noqa: FBT003
    columns = {
        **{name: F.when(well_formed, F.col(name)) for name in FIELDS},
        "reason": F.substring_index(fault_, SEPARATOR, 1),
        "detail": F.expr(f"substring(fault, instr(fault, '{SEPARATOR}') + {len(SEPARATOR)})"),
        "partial": F.coalesce(F.col("partial"), F.lit(False)),  # noqa: FBT003
        "content": F.when(well_formed & change & F.col("csn").isNotNull(), content()),
        "value": F.when(~good_change, F.col("value")),
        "size": F.lit(None).cast("bigint"),
    }
    return [columns.get(name, F.col(name)).alias(name) for name in CHECKED.names]


def tables_of(known: Known) -> list[Table]:
    """The tables again."""
    return [Table(name, key, dict(columns)) for name, key, columns in known]


@lru_cache(maxsize=8)
def _closer(known: Known, limits: Limits) -> Column:
    """What a closer look finds at a record that is not plain: its fault, key and images."""
    plain = is_plain(F.col("form").isNotNull(), limits)
    table, key, after, before = (F.col(name) for name in ("table", "key", "after", "before"))
    named = F.when(F.col("op") != Op.TRUNCATE.value, key)
    looked = tokens.look(tables_of(known), table, named, after, before)
    of_change = F.when(is_kind(RecordKind.CHANGE), looked)
    return F.when(~plain, tokens.let(of_change, lambda seen: _looked_at(seen, limits)))


def _looked_at(looked: Column, limits: Limits) -> Column:
    """The fault; key and images mended if they are a good change's, else as they came."""
    truncate = F.col("op") == Op.TRUNCATE.value
    good = looked["table_fault"].isNull() & (looked["key_fault"].isNull() | truncate)
    mended = looked.isNotNull() & good
    images = {name: F.when(mended, looked[name]).otherwise(F.col(name)) for name in OBJECTS}
    return F.struct(
        fault(looked, limits).alias("fault"),
        *[image.alias(name) for name, image in images.items()],
        (F.col("after").isNotNull() & mended & looked["partial"]).alias("partial"),
    )


@lru_cache(maxsize=1)
def _judged() -> dict[str, Column]:
    closer, partial = F.col("closer"), F.col("form") == pattern.PARTIAL
    images = {n: F.when(closer.isNull(), F.col(n)).otherwise(closer[n]) for n in OBJECTS}
    partly = F.when(closer.isNull(), partial).otherwise(closer["partial"])
    return {**images, "fault": closer["fault"], "partial": partly}


def content() -> Column:
    """Core's Change.content, of the columns of that name."""
    parts = [F.coalesce(F.col(name).cast("string"), F.lit(NULL_TEXT)) for name in CONTENT_FIELDS]
    return F.substring(F.sha2(F.concat_ws(FIELD_SEPARATOR, *parts), 256), 1, CONTENT_DIGITS)
