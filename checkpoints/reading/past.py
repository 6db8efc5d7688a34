"""The state of a hub as it was: `rows` by Delta time travel, every other table by its batches.

A row of any other table names its batch, so what is read of it is bounded by that, and its newest
version tells the past (docs/tables.md, The past). How far back that goes is here as well.
"""

import tempfile
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import NoReturn

from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from checkpoints.commit.epochs import Checkpoint, checkpoint_of
from checkpoints.commit.recorded import BatchMark, commit_of
from checkpoints.root import exist, storage_options, table_uri
from checkpoints.store import StateStore
from checkpoints.tables import SCHEMAS, TableName
from streaming.core.access.root import StateRoot
from streaming.core.model.errors import StateError


@dataclass(frozen=True, slots=True)
class RowsVersion:
    """A version of `rows`, and the hub epoch up to which it holds every change."""

    version: int
    rows_epoch: int


class PastStore(StateStore):
    """The tables of a live or dead hub, for reading only; `rows` as it was at one commit.

    The other tables are opened anew now and then, because files that a running hub has compacted
    away stay for ten minutes only.
    """

    def __init__(self, root: StateRoot) -> None:
        super().__init__(root)
        self._empty = tempfile.TemporaryDirectory(prefix="slackwater-")
        self._rows: RowsVersion | None = None
        self._open[TableName.ROWS] = DeltaTable.create(
            Path(self._empty.name) / TableName.ROWS, Schema.from_arrow(SCHEMAS[TableName.ROWS])
        )

    @property
    def rows_epoch(self) -> int:
        """The hub epoch up to which `rows` is here; 0: it is empty, the changelog has all."""
        return self._rows.rows_epoch if self._rows else 0

    def travel(self, commit: Checkpoint) -> None:
        """Open `rows` as it was at this commit; what is there no more stays as it was opened last.

        Only forward: a version that is older than the opened one tells less.
        """
        wanted = rows_version(commit)
        if wanted is None or (self._rows and wanted.version <= self._rows.version):
            return
        table = readable_version(self.root, wanted.version)
        if table is not None:
            self._open[TableName.ROWS], self._rows = table, wanted

    def refreshed(self, name: TableName) -> DeltaTable:
        """The table at its newest version; `rows` as it was."""
        return self.table(name) if name is TableName.ROWS else super().refreshed(name)

    def reopen(self) -> None:
        """Open every other table at its newest version when it is read next."""
        self._open = {TableName.ROWS: self._open[TableName.ROWS]}

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise StateError(f"the state in {self.root} is read as it was: nothing is written to it")

    def versions(self) -> dict[str, int]:
        """None: the commit names those of its time, when a later table was not there."""
        return {}

    create = append_once = drop_batch = _refuse

    def close(self) -> None:
        """Remove the empty table."""
        self._empty.cleanup()


def rows_version(commit: Checkpoint) -> RowsVersion | None:
    """The version of `rows` that a commit names; None: its hub noted none."""
    version = commit.versions.get(TableName.ROWS)
    return None if version is None else RowsVersion(version, commit.rows_epoch)


def readable_version(root: StateRoot, version: int) -> DeltaTable | None:
    """`rows` at this version; None if its log or one of its files is gone."""
    options = storage_options(root)
    try:
        table = DeltaTable(table_uri(root, TableName.ROWS), version, storage_options=options)
        names = [f"{TableName.ROWS}/{PurePath(file).name}" for file in table.file_uris()]
    except DeltaError:
        return None
    return table if all(exist(root, *names)) else None


def oldest_epoch(store: StateStore, marks: Sequence[BatchMark]) -> int:
    """The first hub epoch that can be judged again; above the last one: none can.

    As long as nothing is purged the changelog tells every row. Behind that the state before the
    first batch is needed, so `rows` must be there as it was, with everything that is purged.
    """
    if not marks:
        return 1
    purged = _checkpoint(store, marks[-1].batch).state.purge_epoch
    if not purged:
        return marks[0].hub_epoch or 1
    found = bisect_left(marks, True, key=lambda mark: _can_start(store, mark, purged))  # noqa: FBT003
    return marks[found].hub_epoch + 1 if found < len(marks) else marks[-1].hub_epoch + 1


def _can_start(store: StateStore, mark: BatchMark, purged: int) -> bool:
    if mark.hub_epoch < purged:
        return False
    version = rows_version(_checkpoint(store, mark.batch))
    return (
        version is not None
        and version.rows_epoch >= purged
        and readable_version(store.root, version.version) is not None
    )


def _checkpoint(store: StateStore, batch: int) -> Checkpoint:
    row = commit_of(store, batch)
    assert row is not None, "a mark is of a commit row"  # noqa: S101
    return checkpoint_of(row)
