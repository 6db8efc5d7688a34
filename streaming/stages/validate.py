"""Validate: each record gets the first rule that it breaks, or its facts in canonical text."""

from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streaming.core.change import CONTENT_DIGITS, CONTENT_FIELDS, FIELD_SEPARATOR, NULL_TEXT, Op
from streaming.core.csn import MAX_SKEW_S
from streaming.core.record import Kind
from streaming.core.table import ColumnType, Table
from streaming.stages import pattern, tokens
from streaming.stages.parse import FIELDS, OBJECTS, parse, skim
from streaming.stages.plain import Limits, is_kind, is_plain
from streaming.stages.read import COLUMNS
from streaming.stages.rules import SEPARATOR, fault

VERSION = 1
RECORD_BYTES = 1_000_000

FACTS = (
    *("rid", "offset", "time", "reason", "detail", "kind", "session", "csn", "prim_csn", "epoch"),
    *("table", "key", "op", "before", "after", "opno", "content", "partial", "value"),
)
"""The columns that the driver decides by, in this order."""

_Known = tuple[tuple[str, tuple[str, ...], tuple[tuple[str, ColumnType], ...]], ...]
"""Tables as something to remember expressions by."""


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
    return _validated(parsed, _known(tables), Limits(hub_version, record_bytes, skew_s))


def facts(
    records: DataFrame,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    *,
    hub_version: int = VERSION,
    record_bytes: int = RECORD_BYTES,
    skew_s: int = MAX_SKEW_S,
) -> pa.Table:
    """The validated records on the driver, planned in a fraction of the time.

    Spark plans every micro-batch anew, and most hold nothing but plain records. So the first plan
    knows only those; what it leaves over is read once more by the rules.
    """
    known, limits = _known(tables), Limits(hub_version, record_bytes, skew_s)
    form, plainly = _form(known), _plainly(limits)
    skimmed = skim(records, topics).withColumn("form", form).withColumns(plainly)
    found = skimmed.select(*_facts()).toArrow()
    good, odd = (found.filter(claim(found["reason"])) for claim in (pc.is_null, pc.is_valid))
    if not odd.num_rows:
        return found
    frame = records.sparkSession.createDataFrame(_records(odd, topics))
    rest = _validated(parse(frame, topics), known, limits).toArrow()
    return pa.concat_tables([good, rest.cast(good.schema)])


def _validated(parsed: DataFrame, known: _Known, limits: Limits) -> DataFrame:
    closely = parsed.withColumn("form", _form(known)).withColumn("closer", _closer(known, limits))
    return closely.withColumns(_judged()).select(*_facts())


def _records(found: pa.Table, topics: Mapping[str, int]) -> pa.Table:
    """Facts back as the records that they were made of."""
    names = {rid: topic for topic, rid in topics.items()}
    said_in = pa.array([names[rid] for rid in found["rid"].to_pylist()], pa.string())
    columns = [said_in, found["offset"], found["time"], found["value"]]
    return pa.table(columns, names=list(COLUMNS))


def _known(tables: Mapping[str, Table]) -> _Known:
    return tuple((t.name, t.key, tuple(t.columns.items())) for t in tables.values())


def _tables(known: _Known) -> list[Table]:
    return [Table(name, key, dict(columns)) for name, key, columns in known]


# -- expressions, made once: it takes long, and every micro-batch needs them again -----------------


@lru_cache(maxsize=8)
def _form(known: _Known) -> Column:
    """Of a change: pattern.WHOLE, pattern.PARTIAL, or neither."""
    texts = (F.col(name) for name in ("table", "key", "after", "before"))
    return F.when(is_kind(Kind.CHANGE), pattern.form(_tables(known), *texts))


@lru_cache(maxsize=8)
def _plainly(limits: Limits) -> dict[str, Column]:
    """Verdicts on what was skimmed: good as it came, or left over."""
    plain = is_plain(F.col("form").isNotNull(), limits)
    left_over = F.lit(f"unknown{SEPARATOR}")
    return {"fault": F.when(~plain, left_over), "partial": F.col("form") == pattern.PARTIAL}


@lru_cache(maxsize=8)
def _closer(known: _Known, limits: Limits) -> Column:
    """What a closer look finds at a record that is not plain: its fault, key and images."""
    plain = is_plain(F.col("form").isNotNull(), limits)
    table, key, after, before = (F.col(name) for name in ("table", "key", "after", "before"))
    named = F.when(F.col("op") != Op.TRUNCATE.value, key)
    looked = tokens.look(_tables(known), table, named, after, before)
    of_change = F.when(is_kind(Kind.CHANGE), looked)
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


@lru_cache(maxsize=1)
def _facts() -> list[Column]:
    """FACTS; of what is no JSON nothing is known but its place, time and bytes."""
    well_formed, fault_ = F.col("well_formed"), F.col("fault")
    change = F.col("kind") == Kind.CHANGE.value
    good_change = F.coalesce(change & fault_.isNull(), F.lit(False))  # noqa: FBT003
    columns = {
        **{name: F.when(well_formed, F.col(name)) for name in FIELDS},
        "reason": F.substring_index(fault_, SEPARATOR, 1),
        "detail": F.expr(f"substring(fault, instr(fault, '{SEPARATOR}') + {len(SEPARATOR)})"),
        "partial": F.coalesce(F.col("partial"), F.lit(False)),  # noqa: FBT003
        "content": F.when(well_formed & change & F.col("csn").isNotNull(), _content()),
        "value": F.when(~good_change, F.col("value")),
    }
    return [columns.get(name, F.col(name)).alias(name) for name in FACTS]


def _content() -> Column:
    parts = [F.coalesce(F.col(name).cast("string"), F.lit(NULL_TEXT)) for name in CONTENT_FIELDS]
    return F.substring(F.sha2(F.concat_ws(FIELD_SEPARATOR, *parts), 256), 1, CONTENT_DIGITS)
