"""Check records where Spark read them, or on the driver while Spark reads on.

Executors import this module, so it needs no more than what is shipped to them.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from streaming.core.model.table import Table
from streaming.core.records.check import LIMITS, Limits
from streaming.jvm.private import collect_batches, map_batches
from streaming.stages.check import check_records
from streaming.stages.checked import CHECKED, NO_CHECKED

_BESIDE = ThreadPoolExecutor(2, thread_name_prefix="check")
"""Arrow releases Python's lock, so two tables are parsed while a third arrives."""

_WORTH_IT = 10_000
"""From so many records on, the overhead of a call is small against its records."""


def parse_on_driver(
    records: DataFrame,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits = LIMITS,
) -> pa.Table:
    """CHECKED of all records (carriers/read.py: COLUMNS), in any order."""

    def checked(arrived: pa.Table) -> pa.Table:
        return check_records(arrived, topics, tables, limits)

    parts = _BESIDE.map(checked, _coalesced(collect_batches(records)))
    return pa.concat_tables([NO_CHECKED, *parts])


def parse_on_executors(
    records: DataFrame,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits = LIMITS,
) -> DataFrame:
    """The same, in the Python workers of the executors that read them."""
    parse = partial(_parse, topics=topics, tables=tables, limits=limits)
    return map_batches(records, parse, CHECKED)


def _parse(
    arriving: Iterable[pa.RecordBatch],
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits,
) -> Iterator[pa.RecordBatch]:
    for records in _coalesced(arriving):
        yield from check_records(records, topics, tables, limits).to_batches()


def _coalesced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the batches, small ones concatenated, to save calls per table."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= _WORTH_IT:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
