"""The work beside the hot path: `rows` is brought up to date, files and logs are kept few.

One thread, one job at a time; Spark does the work outside of Python's lock. The hub's own table
objects stay where they are until it looks again.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from checkpoints.rows import materialize
from checkpoints.spark_errors import translated
from checkpoints.store import Store, explained
from checkpoints.tables import TableName

POOL = "maintenance"
"""Spark's scheduler pool of this work: a batch gets a slot as soon as one is free."""

SMALL_BYTES = 16_000_000
SMALL_FILES_MAX = 100
"""A commit costs 0.05 ms for each file of the table (facts: performance)."""

CHECKPOINT_EVERY_COMMITS = 50
KEPT_HOURS = 168
"""How long files stay that no newer version of their table holds."""


class Maintenance:
    """The maintenance of one state root."""

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self._spark = spark
        self._store = store
        self._thread = ThreadPoolExecutor(1, POOL, self._yield_to_batches)
        self._under_way: list[Future[None]] = []
        self._checkpointed = dict.fromkeys(TableName, 0)

    def materialize(self, after: int, to: int) -> "Future[None]":
        """Start to bring `rows` from one hub epoch up to another."""
        return self._thread.submit(self._told, lambda: self._materialize(after, to))

    def tidy(self) -> None:
        """Start to keep files and logs few, unless that goes on; raise what was met before."""
        done = [work for work in self._under_way if work.done()]
        self._under_way = [work for work in self._under_way if work not in done]
        for work in done:
            work.result()
        if not self._under_way:
            self._under_way.append(self._thread.submit(self._told, self._tidy))

    def vacuum(self) -> None:
        """Start to remove the files of `rows` that no version of the last week holds: takes long.

        Those of the other tables go with their logs.
        """
        self._under_way.append(self._thread.submit(self._told, self._vacuum))

    def close(self) -> None:
        """Wait for the work under way."""
        self._thread.shutdown()

    def _yield_to_batches(self) -> None:
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)

    def _materialize(self, after: int, to: int) -> None:
        """Merge; again if another hub did so meanwhile, which changes nothing that is there."""
        while True:
            with suppress(CommitFailedError), translated():
                return materialize(self._spark, self._store, after, to)

    def _tidy(self) -> None:
        for name in TableName:
            compact(self._spark, self._store.uri(name))
            if name is not TableName.ROWS:  # Spark alone writes it, and sees to its log
                self._shorten(name)

    def _vacuum(self) -> None:
        rows = self._store.uri(TableName.ROWS)
        with translated():
            self._spark.sql(f"VACUUM delta.`{rows}` RETAIN {KEPT_HOURS} HOURS")

    def _shorten(self, name: TableName) -> None:
        """Write a checkpoint behind many commits; remove log entries and files that expired."""
        table = DeltaTable(self._store.uri(name))
        if table.version() - self._checkpointed[name] >= CHECKPOINT_EVERY_COMMITS:
            table.create_checkpoint()
            table.cleanup_metadata()
            table.vacuum(KEPT_HOURS, dry_run=False)
            self._checkpointed[name] = table.version()

    def _told(self, work: Callable[[], None]) -> None:
        """Do the work; StateError for what the storage refuses."""
        with explained(self._store.root):
            work()


def compact(spark: SparkSession, uri: str) -> None:
    """Make a table's small files one when they are many; what is large is not touched again.

    By Spark: a hub that was overtaken and does not know it yet may do the same at the same time;
    Delta refuses the slower one, deltalake lets both commit, so that every row is there twice.
    """
    sizes = pa.table(DeltaTable(uri).get_add_actions(flatten=True)).column("size_bytes").to_pylist()
    if sum(size < SMALL_BYTES for size in sizes) <= SMALL_FILES_MAX:
        return
    spark.conf.set("spark.databricks.delta.optimize.minFileSize", str(SMALL_BYTES))
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(4 * SMALL_BYTES))
    with suppress(CommitFailedError), translated():
        spark.sql(f"OPTIMIZE delta.`{uri}`")
