"""The state of a hub as it was: `rows` by Delta time travel, every other table by its batches.

A row of any other table names its batch, so what is read of it is bounded by that, and its newest
version tells the past (docs/tables.md, The past).
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePath

from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from checkpoints.commit.epochs import Checkpoint
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

    def create(self) -> None:
        """Refuse: nothing is written here."""
        raise _is_past(self.root)

    def append_once(self, *_: object, **__: object) -> bool:
        """Refuse: nothing is written here."""
        raise _is_past(self.root)

    def drop_batch(self, *_: object) -> None:
        """Refuse: nothing is written here."""
        raise _is_past(self.root)

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


def _is_past(root: StateRoot) -> StateError:
    return StateError(f"the state in {root} is read as it was: nothing is written to it")
