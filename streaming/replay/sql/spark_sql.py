"""SQL over everything as of a hub epoch, by Spark: its dialect, and any amount of rows."""

from collections.abc import Sequence
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import from_json
from pyspark.sql.types import StringType, StructField, StructType

from checkpoints.commit.recorded import BatchMark
from checkpoints.query import open_table
from checkpoints.reading.past import PastStore
from checkpoints.reading.sql_values import TYPES
from checkpoints.reading.truncates import last_truncates
from checkpoints.rows import spark_literal
from checkpoints.tables import TableName
from streaming.core.model.errors import QuestionError
from streaming.core.model.table import Table
from streaming.jvm.query_plan import check_query
from streaming.replay.sql.tables import HUB, HUB_NAMES, NEVER, STANDING, VIEWS


def query(
    spark: SparkSession, store: PastStore, tables: Sequence[Table], last: BatchMark, text: str
) -> DataFrame:
    """The answer to a query; QuestionError if it does anything but read them.

    `last`: the last batch that it sees, to which the store must have travelled.
    """
    _register_hub(spark, store, last.batch)
    for name, view in VIEWS.items():
        spark.sql(in_spark(view)).createOrReplaceTempView(name)
    truncates = last_truncates(store, store.rows_epoch, last.hub_epoch)
    for table in tables:
        truncate, place = truncates.get(table.name, (NEVER, -1))
        rows = _rows(spark, table, store.rows_epoch, truncate.hub_epoch, place)
        rows.createOrReplaceTempView(_quoted(table.name))
    names = {*HUB_NAMES, *(table.name for table in tables)}
    check_query(spark, text, frozenset(name.lower() for name in names))
    try:
        return spark.sql(text)
    except PySparkException as error:
        raise QuestionError(str(error).split("\n", 1)[0]) from None


def _register_hub(spark: SparkSession, store: PastStore, batch: int) -> None:
    """The hub's own tables up to this batch; `rows` at its version."""
    for name in TableName:
        if open_table(store.root, name) is None:
            continue  # an earlier hub had no such table
        if name is TableName.ROWS:
            table = store.table(name)
            past = spark.read.format("delta").option("versionAsOf", table.version())
            found = past.load(table.table_uri)
        else:
            path = str(Path(store.uri(name)).absolute())
            whole = spark.read.format("delta").load(path)
            found = whole.where(whole.batch <= batch) if "batch" in whole.columns else whole
        found.createOrReplaceTempView(f"{HUB}{name.value}")


def _rows(spark: SparkSession, table: Table, after: int, truncated: int, place: int) -> DataFrame:
    """The rows as they stood, typed; `truncated`, `place`: where the table's last truncate is."""
    standing = in_spark(STANDING).format(
        rows=f"{HUB}{TableName.ROWS}",
        table=spark_literal(table.name),
        after=after,
        truncated=truncated,
        place=place,
    )
    rows = spark.sql(standing)
    fields = StructType([StructField(column, StringType()) for column in table.columns])
    parsed = rows.select("*", from_json("image", fields).alias("of_row"))
    columns = [
        f"CAST(of_row.{_quoted(column)} AS {TYPES[kind]}) AS {_quoted(column)}"
        for column, kind in table.columns.items()
    ]
    return parsed.selectExpr(
        *columns, "author AS _author", "hub_epoch AS _hub_epoch", "csn AS _csn"
    )


def in_spark(sql: str) -> str:
    """The same query in Spark's dialect."""
    return sql.replace('"', "`").replace("unnest(", "explode(")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
