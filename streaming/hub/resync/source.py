"""Reads the state for resyncs, on threads beside the batches."""

import itertools
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import TypeVar

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from checkpoints.reading.quarantined_rows import quarantined_rows
from checkpoints.reading.reader import open_state
from checkpoints.reading.resync_rows import SortedRows, row_counts, sort_rows
from checkpoints.root import remove_folder
from checkpoints.spark_threads import SparkThreads
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.access.root import StateRoot
from streaming.core.model.change import RowKey
from streaming.core.model.table import Table
from streaming.core.records.images import row_named
from streaming.core.records.record import Reason
from streaming.core.state.topology import Topology
from streaming.hub.resync.pages import LackingRows
from streaming.stages.filtered import with_filter_columns
from streaming.stages.tracked import TRACKED_COLUMNS, newest, tracked_rows

FOLDER = "resync"
"""A folder of the state root, for the sorted rows."""

EPOCHS_AT_ONCE = 500
"""Of how many hub epochs the changelog is looked at in one go, so that memory is bounded."""

Result = TypeVar("Result")


class StateSource:
    """A ResyncSource on the tables of one state root; `name`: of the hub's process."""

    def __init__(self, spark: SparkSession, root: StateRoot, name: str, workers: int) -> None:
        self._spark = spark
        self._root = root
        self._folder = f"{FOLDER}/{name}"
        self._threads = SparkThreads(spark, root, FOLDER, workers)
        self._numbers = itertools.count()

    def start(self, work: Callable[[], Result]) -> "Future[Result]":
        """See ResyncSource."""
        return self._threads.start(work)

    def lacking(self, asked: LackingRows) -> pa.Table:
        """See ResyncSource."""
        store, found = StateStore(self._root), list[pa.Table]()
        for after in range(asked.after, asked.to, EPOCHS_AT_ONCE):
            where = _between(after, min(after + EPOCHS_AT_ONCE, asked.to))
            if asked.is_full:
                where &= ~ds.field("table").isin(sorted(asked.subscription.tables))
            columns = with_filter_columns(TRACKED_COLUMNS, asked.subscription)
            log = store.read(TableName.CHANGELOG, where, columns)
            rows = tracked_rows(log, asked.subscription, asked.ruv, asked.floors)
            found = [newest([*found, rows])]
        return newest(found)

    def counts(self) -> Mapping[str, int]:
        """See ResyncSource."""
        return row_counts(StateStore(self._root))

    def touched(self, tables: Collection[str], after: int, to: int) -> Mapping[str, set[str]]:
        """See ResyncSource."""
        where = _between(after, to) & ds.field("table").isin(sorted(tables))
        rows = StateStore(self._root).read(TableName.CHANGELOG, where, ["table", "key"])
        different = rows.group_by(["table", "key"]).aggregate([])
        found: dict[str, set[str]] = {name: set() for name in tables}
        names, keys = different["table"].to_pylist(), different["key"].to_pylist()
        for name, key in zip(names, keys, strict=True):
            if key:  # a range may have none, a truncate has none
                found[name].add(key)
        return found

    def uncarried(self, consumer: int, topology: Topology) -> Collection[RowKey]:
        """See ResyncSource."""
        kept = quarantined_rows(open_state(self._root), topology.visible, topology.tables)
        named = (
            row_named(one["table"], one["key"], topology.tables)
            for one in kept
            if one["rid"] == consumer and Reason(one["reason"]).is_uncarried
            if one["table"] is not None and one["key"] is not None
        )
        return {row for row in named if row is not None}

    def sort(self, agreement: str, table: Table, tracked: pa.Table | None) -> SortedRows:
        """See ResyncSource."""
        folder = f"{self._folder}/{agreement}-{next(self._numbers)}"
        return sort_rows(self._spark, StateStore(self._root), table, tracked, folder)

    def close(self) -> None:
        """End the threads and remove the files."""
        self._threads.close()
        remove_folder(self._root, self._folder)


def _between(after: int, to: int) -> ds.Expression:
    return (ds.field("hub_epoch") > after) & (ds.field("hub_epoch") <= to)
