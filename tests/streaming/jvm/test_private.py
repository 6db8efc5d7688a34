"""What is done with pyspark's private parts does what the public ones do."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streaming.jvm.private import collect_batches, map_batches


def test_collected_batches_hold_the_rows_of_to_arrow(spark: SparkSession) -> None:
    """Batches come as their tasks end: in any order, but none twice and none left out."""
    frame = spark.range(1_000, numPartitions=7)

    table = pa.Table.from_batches(collect_batches(frame))

    assert table.num_rows == 1_000
    assert table.sort_by("id") == frame.toArrow().sort_by("id")


def test_batches_of_an_empty_frame_are_none(spark: SparkSession) -> None:
    """A poll that found nothing has no schema to wait for."""
    assert list(collect_batches(spark.range(0))) == []


def test_a_query_that_fails_says_why(spark: SparkSession) -> None:
    """The reason is in the JVM's thread that sends; the socket only ends."""
    frame = spark.range(10).select(F.assert_true(F.col("id") < 7, "this row is too large"))

    with pytest.raises(PySparkException, match="this row is too large"):
        list(collect_batches(frame))


def test_collecting_that_is_given_up_leaves_the_session_usable(spark: SparkSession) -> None:
    """A batch whose step fails does not read the rest; the next one reads all of it."""
    batches = collect_batches(spark.range(100_000, numPartitions=4))

    assert next(batches).num_rows > 0
    batches.close()  # type: ignore[attr-defined]

    assert sum(batch.num_rows for batch in collect_batches(spark.range(1_000))) == 1_000


def test_mapped_batches_have_the_schema_that_is_named(spark: SparkSession) -> None:
    """Python workers return Arrow batches; what a function closes over comes along."""
    step = 5

    def moved(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"moved": pc.add(batch["id"], step)})

    mapped = map_batches(spark.range(3), moved, pa.schema([("moved", pa.int64())]))

    assert mapped.schema.simpleString() == "struct<moved:bigint>"
    assert sorted(mapped.toArrow()["moved"].to_pylist()) == [5, 6, 7]
