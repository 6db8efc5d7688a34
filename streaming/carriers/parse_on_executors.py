"""Check records where Spark read them: in the Python workers of its executors."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from streaming.carriers.arrow_stream import coalesced
from streaming.core.model.table import Table
from streaming.core.records.check import LIMITS, Limits
from streaming.jvm.private import map_batches
from streaming.stages.check import check_records
from streaming.stages.checked import CHECKED


def parse_on_executors(
    records: DataFrame,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits = LIMITS,
) -> DataFrame:
    """CHECKED of all records (carriers/read.py: COLUMNS), in any order."""
    parse = partial(_parse, topics=topics, tables=tables, limits=limits)
    return map_batches(records, parse, CHECKED)


def _parse(
    arriving: Iterable[pa.RecordBatch],
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits,
) -> Iterator[pa.RecordBatch]:
    for records in coalesced(arriving):
        yield from check_records(records, topics, tables, limits).to_batches()
