"""Skim: nearly all there is, taken apart where it was read; the rest is settled after.

The driver does the same with what it receives (carriers/settle.py); this runs in Python workers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from streaming.carriers.arrow_stream import gathered
from streaming.core.model.table import Table
from streaming.stages.changes import changes, unsettled
from streaming.stages.checked import CHECKED
from streaming.stages.plain import LIMITS, Limits


def skim(
    records: DataFrame,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits = LIMITS,
) -> DataFrame:
    """The CHECKED of plain changes; of all others UNSETTLED, their place, time and bytes."""
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
    """`DataFrame.mapInArrow` to CHECKED, which wants pandas to be there and has no use for it.

    Where there is pandas, pyarrow loads it: half a second for each command of an operator.
    """
    kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    function = UserDefinedFunction(told, from_arrow_schema(CHECKED), "told", kind)
    column = function(*(records[name] for name in records.columns))
    mapped = records._jdf.mapInArrow(column._jc, False, None)  # noqa: FBT003, SLF001
    return DataFrame(mapped, records.sparkSession)
