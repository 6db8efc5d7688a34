"""The work beside the hot path: `rows` is brought up to date, small files become large ones.

One thread, one job at a time; Spark and Delta do the work outside of Python's lock. The tables are
opened anew, so that the hub's own table objects stay where they are until it looks again.
"""

from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from checkpoints.rows import materialize
from checkpoints.store import Store
from checkpoints.tables import TableName

POOL = "maintenance"
"""Spark's scheduler pool of this work: a batch gets a slot as soon as one is free."""

SMALL_BYTES = 16_000_000
SMALL_FILES_MAX = 50
"""A commit costs 0.05 ms for each file of the table (facts: performance)."""


class Maintenance:
    """The maintenance of one state root."""

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self._spark = spark
        self._store = store
        self._thread = ThreadPoolExecutor(1, "maintenance")
        self._compaction: Future[None] | None = None

    def start(self, after: int, to: int) -> "Future[None]":
        """Bring `rows` from one hub epoch up to another."""
        return self._thread.submit(self._materialize, after, to)

    def compact(self) -> None:
        """Start to compact the tables that have many small files; raise what the last one met."""
        if self._compaction is None or self._compaction.done():
            if self._compaction is not None:
                self._compaction.result()
            self._compaction = self._thread.submit(self._compact)

    def close(self) -> None:
        """Wait for the work under way."""
        self._thread.shutdown()

    def _materialize(self, after: int, to: int) -> None:
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
        materialize(self._spark, self._store, after, to)

    def _compact(self) -> None:
        for name in TableName:
            if name is not TableName.ROWS:  # the MERGE writes few and large ones
                compact(DeltaTable(self._store.uri(name)))


def compact(table: DeltaTable) -> None:
    """Make the table's small files one when they are many; what is large is not touched again."""
    sizes = pa.table(table.get_add_actions(flatten=True)).column("size_bytes").to_pylist()
    if sum(size < SMALL_BYTES for size in sizes) > SMALL_FILES_MAX:
        table.optimize.compact(target_size=SMALL_BYTES)
