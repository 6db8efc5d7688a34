"""Skim: nearly all there is, taken apart where it was read; the rest is settled after.

This is what the driver does with what arrives at it (stages/settle.py), in Spark's Python workers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from streaming.core.table import Table
from streaming.stages.arriving import gathered
from streaming.stages.changes import changes, unsettled
from streaming.stages.facts import FACTS
from streaming.stages.plain import LIMITS, Limits


def skim(
    records: DataFrame,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits = LIMITS,
) -> DataFrame:
    """The FACTS of plain changes; of all others UNSETTLED, their place, time and bytes."""
    told = partial(_told, topics=topics, tables=tables, limits=limits)
    return _in_arrow(records, told)


def _told(
    arrived: Iterable[pa.RecordBatch],
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits,
) -> Iterator[pa.RecordBatch]:
    for records in gathered(arrived):
        for part in changes(unsettled(records, topics), tables, limits):
            yield from part.to_batches()


def _in_arrow(
    records: DataFrame, told: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> DataFrame:
    """`DataFrame.mapInArrow` to FACTS, which wants pandas to be there and has no use for it.

    Where there is pandas, pyarrow loads it: half a second for each command of an operator.
    """
    kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    function = UserDefinedFunction(told, from_arrow_schema(FACTS), "told", kind)
    column = function(*(records[name] for name in records.columns))
    mapped = records._jdf.mapInArrow(column._jc, False, None)  # noqa: FBT003, SLF001
    return DataFrame(mapped, records.sparkSession)
