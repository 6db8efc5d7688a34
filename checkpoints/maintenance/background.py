"""Background maintenance: `rows` is brought up to date, small files and logs are compacted.

One thread, one job at a time; Spark and deltalake work outside of Python's lock. The hub's own
table objects stay at their version until it refreshes them.
"""

import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from checkpoints.maintenance.leases import LeaseWatch
from checkpoints.maintenance.pins import keep_pinned, pins
from checkpoints.maintenance.purge import PurgedState, delete_purged
from checkpoints.query import file_sizes
from checkpoints.reading.purgeable import PurgeRequest, purgeable
from checkpoints.root import open_delta, remove_file
from checkpoints.rows import delete_tombstones, materialize
from checkpoints.spark_errors import translated
from checkpoints.spark_threads import POOL, SparkThreads
from checkpoints.store import FILES, KEPT_HOURS, StateStore
from checkpoints.tables import TableName
from streaming.core.access.root import StateRoot
from streaming.core.retention.purge import Purge
from streaming.core.state.hub_state import HubState

SMALL_BYTES = 5_000_000
ROWS_BYTES = 64_000_000
"""A file of `rows`, at most."""

SMALL_FILES_MAX = 100
"""A reader opens each file of a table; a hundred small ones take as long as a large one."""

CHECKPOINT_EVERY_COMMITS = 20
"""A commit costs 0.15 ms for each one since the checkpoint that its table was opened at."""

TOMBSTONES_EVERY_S = 60
"""It reads all of `rows` to find the tombstones that are purged."""

DEAD_KEPT_S = 600
"""How long a reader may go on with a version that it opened just before a compaction."""


@dataclass(slots=True)
class DeadFiles:
    """The files that compactions replaced, each with the time at which no reader reads it any more.

    Only files are removed that the table's log names as removed: no version will ever name them
    again, so a crash in between, or another hub that does the same, does no harm. A file that is
    being appended is in no log yet and is left alone.
    """

    kept_s: float = DEAD_KEPT_S
    _due_s: dict[str, dict[str, float]] = field(default_factory=dict)

    def remove(self, root: StateRoot, name: str, table: DeltaTable, now_s: float) -> None:
        """Remove the files of this table of the root that were first seen replaced `kept_s` ago.

        `table`: at its newest version.
        """
        known = self._due_s.get(name, {})
        replaced = table.vacuum(0, dry_run=True, enforce_retention_duration=False)
        due_s = {file: known.get(file, now_s + self.kept_s) for file in replaced}
        for file in [file for file, at_s in due_s.items() if at_s <= now_s]:
            remove_file(root, f"{name}/{file}")
            due_s[file] = math.inf  # the log names it for a while still
        self._due_s[name] = due_s


class Maintenance:
    """The maintenance of one state root."""

    def __init__(
        self, spark: SparkSession, store: StateStore, dead_kept_s: float = DEAD_KEPT_S
    ) -> None:
        self._spark = spark
        self._store = store
        self._thread = SparkThreads(spark, store.root, POOL, 1)
        self._maintained_at = dict.fromkeys(TableName, 0)
        self._dead_files = DeadFiles(dead_kept_s)
        self._leases = LeaseWatch(store.root)
        self._vacuum_is_due = False
        self._tombstones_purged = 0
        self._tombstones_due_s = 0.0

    def materialize(self, after: int, to: int) -> "Future[None]":
        """Start to bring `rows` from one hub epoch up to another."""
        return self._thread.start(lambda: self._materialize(after, to))

    def maintain(self) -> "Future[None]":
        """Start to compact files and logs."""
        return self._thread.start(self._maintain_all)

    def vacuum(self) -> "Future[None]":
        """Start to remove the files that no log of the last week names: it takes long.

        If a command reads the state, that is done by the first `maintain` behind its end.
        """
        self._vacuum_is_due = True
        return self._thread.start(self._vacuum)

    def find_purge(self, asked: PurgeRequest) -> "Future[Purge | None]":
        """Start to find what may be purged; None: nothing."""
        return self._thread.start(lambda: self._find_purge(asked))

    def purge(self, purged: PurgedState) -> "Future[bool]":
        """Start to delete what the purge of a committed state names; False: not while it is read.

        What a command began to read before that was committed stays until it is done.
        """
        return self._thread.start(lambda: self._purge(purged))

    def close(self) -> None:
        """Cancel Spark's running jobs and end; the next start runs them again."""
        self._thread.close()

    def _materialize(self, after: int, to: int) -> None:
        """Merge, and retry if another hub merged meanwhile; merging again changes nothing."""
        self._until_committed(lambda: materialize(self._spark, self._store, after, to))

    @staticmethod
    def _until_committed(work: Callable[[], None]) -> None:
        while True:
            with suppress(CommitFailedError), translated():
                return work()

    def _purge(self, purged: PurgedState) -> bool:
        is_read = bool(self._leases.alive())
        if not is_read:
            delete_purged(StateStore(self._store.root), purged)
            self._delete_tombstones(purged.state)
        return not is_read

    def _delete_tombstones(self, state: HubState) -> None:
        """Delete them if there are more to delete, and not too often."""
        epoch, now_s = state.tombstone_epoch, time.monotonic()
        if epoch <= self._tombstones_purged or now_s < self._tombstones_due_s:
            return
        self._until_committed(lambda: delete_tombstones(self._spark, self._store, state))
        self._tombstones_purged = epoch
        self._tombstones_due_s = now_s + TOMBSTONES_EVERY_S

    def _find_purge(self, asked: PurgeRequest) -> Purge | None:
        """No further than the oldest pin; nothing while a command reads the state."""
        if self._leases.alive():
            return None
        store = StateStore(self._store.root)
        limit = min([asked.limit, *(one.hub_epoch for one in pins(store).values())])
        return purgeable(store, replace(asked, limit=limit))

    def _maintain_all(self) -> None:
        """Maintain each table that had many commits, unless another process holds the lock."""
        with self._store.locked() as is_ours:
            if not is_ours:
                return
            self._keep_pinned()
            is_read = bool(self._leases.alive())
            for name in TableName:
                self._maintain(name, is_read=is_read)
        if self._vacuum_is_due:
            self._vacuum()

    def _maintain(self, name: TableName, *, is_read: bool) -> None:
        table, merged = open_delta(self._store.root, name), name is TableName.ROWS
        if table.version() - self._maintained_at[name] < CHECKPOINT_EVERY_COMMITS:
            return
        compact(self._spark, table, merged=merged)
        if not merged:  # Spark maintains `rows`
            if not is_read:
                self._dead_files.remove(self._store.root, name, table, time.monotonic())
            table.cleanup_metadata()  # up to the checkpoint before, at which the hub has it open
            table.create_checkpoint()
        self._maintained_at[name] = table.version()

    def _keep_pinned(self) -> None:
        """Let `rows` keep what is pinned; who changed its settings meanwhile did the same."""
        with suppress(CommitFailedError):
            keep_pinned(self._store, time.time_ns() // 1_000_000)

    def _vacuum(self) -> None:
        """Of `rows` by Spark, which knows its deletion vectors."""
        if self._leases.alive():
            return
        self._vacuum_is_due = False
        self._keep_pinned()
        for name in TableName:
            if name is not TableName.ROWS:
                open_delta(self._store.root, name).vacuum(KEPT_HOURS, dry_run=False, full=True)
        with translated():
            rows = self._store.uri(TableName.ROWS)
            self._spark.sql(f"VACUUM delta.`{rows}`")


def compact(spark: SparkSession, table: DeltaTable, *, merged: bool) -> None:
    """Merge a table's small files when there are many; large files are not rewritten.

    `merged`: the table has deletion vectors, which only Spark can write. For all others deltalake
    takes a hundredth of Spark's time. Delta refuses the slower of two compactions that start from
    one version, and that one changes nothing.
    """
    if sum(size < SMALL_BYTES for size in file_sizes(table).values()) <= SMALL_FILES_MAX:
        return
    if not merged:
        with suppress(CommitFailedError):
            table.optimize.compact(
                target_size=SMALL_BYTES, max_concurrent_tasks=1, writer_properties=FILES
            )
        return
    spark.conf.set("spark.databricks.delta.optimize.minFileSize", str(SMALL_BYTES))
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(ROWS_BYTES))
    with suppress(CommitFailedError), translated():
        spark.sql(f"OPTIMIZE delta.`{table.table_uri}`")
