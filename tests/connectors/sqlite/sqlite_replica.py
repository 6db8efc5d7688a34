"""A SQLite replica for the tests: its tables, a client of any kind, and what its journal holds."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from connectors.agent.contract import JournalEntry
from connectors.sqlite.install.install import install
from connectors.sqlite.journal import entries as journal
from connectors.sqlite.journal.entries import JOURNAL_BOUND, JournalBound
from connectors.sqlite.store import SqliteStore
from streaming.core.model.change import Change, Op, RowKey
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Commit, Record

RID = 7
ITEMS = Table(
    "items",
    ("id",),
    {"id": ColumnType.INT64, "name": ColumnType.TEXT, "price": ColumnType.DECIMAL},
)
CREATE_ITEMS = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT UNIQUE, price TEXT)"
PAIRS = Table(
    'odd "pairs"\'s',
    ("b", "a"),
    {"a": ColumnType.TEXT, "x y": ColumnType.INT32, "b": ColumnType.TEXT},
)
CREATE_PAIRS = (
    'CREATE TABLE "odd ""pairs""\'s" (a TEXT, "x y" INT, b TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID'
)


@dataclass(frozen=True, slots=True)
class Replica:
    """A database that is captured, with a client that knows nothing of the agent."""

    path: Path
    client: sqlite3.Connection
    tables: tuple[Table, ...]

    def store(self, bound: JournalBound = JOURNAL_BOUND) -> SqliteStore:
        """The database as an agent opens it."""
        return SqliteStore.open(self.path, RID, self.tables, journal_bound=bound)

    def entries(self) -> list[JournalEntry]:
        """The journal's entries."""
        return journal.unpublished(self.client, RID, 10**6, 10**9)

    def records(self) -> list[Record]:
        """Everything in the journal."""
        return [entry.record for entry in self.entries()]

    def changes(self) -> list[Change]:
        """The changes in the journal."""
        return list(journal.changes(self.client, RID))

    def replayed(self) -> dict[RowKey, str]:
        """The rows that another replica would hold after the journal."""
        rows = dict[RowKey, str]()
        for change in self.changes():
            if change.op is Op.DELETE:
                rows.pop(change.row, None)
            else:
                rows[change.row] = change.after or ""
        return rows

    def short(self) -> list[str]:
        """The journal, readable: `op key before -> after`, or `commit`."""
        return [
            "commit" if isinstance(record, Commit) else _short(record)
            for record in self.records()
            if isinstance(record, Commit | Change)
        ]

    def rows(self, table: str = "items") -> list[tuple[object, ...]]:
        """All rows of a table."""
        quoted = table.replace('"', '""')
        return self.client.execute(f'SELECT * FROM "{quoted}" ORDER BY 1').fetchall()


def make(path: Path, tables: Mapping[str, Table]) -> Replica:
    """A new replica with tables, each given by its CREATE statement."""
    client = sqlite3.connect(path, isolation_level=None)
    for statement in tables:
        client.execute(statement)
    install(client, RID, tables.values())
    return Replica(path, client, tuple(tables.values()))


def _short(change: Change) -> str:
    return f"{change.op} {change.key} {change.before or '-'} -> {change.after or '-'}"
