"""Skim: parse and validate at the price of plain records; what is not plain is settled after.

Spark plans every micro-batch anew, and planning all rules takes longer than most batches have.
Nearly every batch holds nothing but plain records, so the plan is for those alone.
"""

from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streaming.core.csn import MAX_SKEW_S
from streaming.core.table import Table
from streaming.stages import pattern
from streaming.stages.parse import parse, parse_plain
from streaming.stages.plain import Limits, is_plain
from streaming.stages.read import COLUMNS
from streaming.stages.rules import SEPARATOR
from streaming.stages.validate import (
    RECORD_BYTES,
    VERSION,
    facts_columns,
    form,
    known_tables,
    validate,
)

UNSETTLED = "unsettled"
"""Stands for the reason of a record that is not plain; it may be good or bad."""


def skim(
    records: DataFrame,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    *,
    hub_version: int = VERSION,
    record_bytes: int = RECORD_BYTES,
    skew_s: int = MAX_SKEW_S,
) -> DataFrame:
    """The FACTS of plain records; of all others UNSETTLED, their place, time and bytes."""
    limits = Limits(hub_version, record_bytes, skew_s)
    parsed = parse_plain(records, topics).withColumn("form", form(known_tables(tables)))
    return parsed.withColumns(_verdict(limits)).select(*facts_columns())


def settle(
    found: pa.Table,
    spark: SparkSession,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    *,
    hub_version: int = VERSION,
    record_bytes: int = RECORD_BYTES,
    skew_s: int = MAX_SKEW_S,
) -> pa.Table:
    """What was skimmed, with the facts of what was left UNSETTLED; the order may be another."""
    good = found.filter(pc.is_null(found["reason"]))
    if good.num_rows == found.num_rows:
        return found
    left = spark.createDataFrame(_records(found.filter(pc.is_valid(found["reason"])), topics))
    rest = validate(
        parse(left, topics),
        tables,
        hub_version=hub_version,
        record_bytes=record_bytes,
        skew_s=skew_s,
    )
    return pa.concat_tables([good, rest.toArrow().cast(good.schema)])


@lru_cache(maxsize=8)
def _verdict(limits: Limits) -> dict[str, Column]:
    plain = is_plain(F.col("form").isNotNull(), limits)
    unsettled = F.when(~plain, F.lit(f"{UNSETTLED}{SEPARATOR}"))
    return {"fault": unsettled, "partial": F.col("form") == pattern.PARTIAL}


def _records(found: pa.Table, topics: Mapping[str, int]) -> pa.Table:
    """Facts back as the records that they are of."""
    names = {rid: topic for topic, rid in topics.items()}
    said_in = pa.array([names[rid] for rid in found["rid"].to_pylist()], pa.string())
    columns = [said_in, found["offset"], found["time"], found["value"]]
    return pa.table(columns, names=list(COLUMNS))
