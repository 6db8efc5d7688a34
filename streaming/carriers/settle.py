"""Settle: the facts of a batch on the driver, whichever way its records were told.

Plain changes and control records are told here, the changes of a batch that the executors carry
there (carriers/parse_on_executors.py); the rest is validated rule by rule on the executors.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from streaming.carriers.arrow_stream import arriving, gathered
from streaming.carriers.read import COLUMNS
from streaming.core.model.table import Table
from streaming.stages.changes import changes, unsettled
from streaming.stages.checked import NO_CHECKED
from streaming.stages.control import control
from streaming.stages.parse import parse
from streaming.stages.plain import LIMITS, Limits
from streaming.stages.validate import validate

_BESIDE = ThreadPoolExecutor(2, thread_name_prefix="settle")
"""Arrow takes a table apart outside of Python's lock: two at a time, while a third arrives."""


def collected(
    records: DataFrame,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits = LIMITS,
) -> pa.Table:
    """The CHECKED of all records, of COLUMNS, in any order."""

    def told(arrived: pa.Table) -> tuple[pa.Table, pa.Table]:
        return changes(unsettled(arrived, topics), tables, limits)

    parts = chain.from_iterable(_BESIDE.map(told, gathered(arriving(records))))
    return settle(
        pa.concat_tables([NO_CHECKED, *parts]), records.sparkSession, topics, tables, limits
    )


def settle(
    found: pa.Table,
    spark: SparkSession,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits = LIMITS,
) -> pa.Table:
    """What was told, with the facts of what was left UNSETTLED; the order may be another."""
    good = found.filter(pc.is_null(found["reason"]))
    if good.num_rows == found.num_rows:
        return found
    told, left = control(found.filter(pc.is_valid(found["reason"])), limits)
    settled = pa.concat_tables([good, told])
    if not left.num_rows:
        return settled
    records = spark.createDataFrame(_records(left, topics))
    rest = validate(parse(records, topics), tables, limits)
    return pa.concat_tables([settled, rest.toArrow().cast(good.schema)])


def _records(found: pa.Table, topics: Mapping[str, int]) -> pa.Table:
    """Facts back as the records that they are of."""
    names = {rid: topic for topic, rid in topics.items()}
    said_in = pa.array([names[rid] for rid in found["rid"].to_pylist()], pa.string())
    columns = [said_in, found["offset"], found["time"], found["value"]]
    return pa.table(columns, names=list(COLUMNS))
