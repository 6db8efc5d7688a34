"""Records are checked where Spark read them: in the Python workers of its executors."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from streaming.carriers.arrow_stream import gathered
from streaming.core.intake.check import LIMITS, Limits
from streaming.core.model.table import Table
from streaming.stages.check import check_records
from streaming.stages.checked import CHECKED


def parse_on_executors(
    records: DataFrame,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits = LIMITS,
) -> DataFrame:
    """CHECKED of all records (carriers/read.py: COLUMNS), in any order.

    `DataFrame.mapInArrow` does the same, but wants pandas to be there and has no use for it: where
    there is pandas, pyarrow loads it, half a second for each command of an operator.
    """
    parse = partial(_parse, topics=topics, tables=tables, limits=limits)
    kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    function = UserDefinedFunction(parse, from_arrow_schema(CHECKED), "checked", kind)
    column = function(*(records[name] for name in records.columns))
    mapped = records._jdf.mapInArrow(column._jc, False, None)  # noqa: FBT003, SLF001
    return DataFrame(mapped, records.sparkSession)


def _parse(
    arriving: Iterable[pa.RecordBatch],
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits,
) -> Iterator[pa.RecordBatch]:
    for records in gathered(arriving):
        yield from check_records(records, topics, tables, limits).to_batches()
