"""What the conformance tests need of a database: its clients, its store, and where it is.

A connector passes them once it gives one of these in conftest.py.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Protocol

from connectors.agent.contract import ReplicaStore
from connectors.sqlite.store import SqliteStore
from connectors.sqlite.transaction import transaction, truncate
from streaming.core.model.table import ColumnType, Table

RID = 7
ITEMS = Table(
    "items",
    ("id",),
    {"id": ColumnType.INT64, "name": ColumnType.TEXT, "price": ColumnType.DECIMAL},
)
"""The one table: `name` is unique, `name` and `price` may be null."""

Row = tuple[int, str | None, str | None]


class DatabaseUnderTest(Protocol):
    """A database with the table ITEMS, not captured before its store is first opened.

    `forgets`: what is published is in its journal no more.
    """

    forgets: bool

    def store(self) -> ReplicaStore:
        """The database as an agent opens it; a store that was open before is used no more."""

    def write(self, *statements: str) -> None:
        """Run statements of a client, each as a transaction of its own."""

    def write_together(self, *statements: str) -> None:
        """Run statements of a client in one transaction."""

    def write_here(self, *statements: str) -> None:
        """Run statements of a client in one transaction, whose writes stay in the database."""

    def roll_back(self, statement: str) -> None:
        """Run a statement of a client in a transaction that is rolled back."""

    def truncate(self) -> None:
        """Empty the table as one change."""

    def holding(self, statement: str) -> AbstractContextManager[None]:
        """A client's transaction that has run this statement, committed at the end."""

    def rows(self) -> Sequence[Row]:
        """The rows by id."""


class SqliteFile:
    """A DatabaseUnderTest in a file of SQLite."""

    forgets = False

    def __init__(self, folder: Path) -> None:
        """Make it, with the table."""
        self.path = folder / "replica.db"
        self._opened: SqliteStore | None = None
        self.write("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT UNIQUE, price TEXT)")

    @contextmanager
    def _client(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as client:
            yield client

    def store(self) -> ReplicaStore:
        """The database as an agent opens it."""
        self.close()
        self._opened = SqliteStore.open(self.path, RID, [ITEMS])
        self._opened.connection.execute("PRAGMA busy_timeout = 10")
        return self._opened

    def close(self) -> None:
        """Close the store, as the end of its process does."""
        if self._opened is not None:
            self._opened.close()

    def write(self, *statements: str) -> None:
        """Run statements of a client, each as a transaction of its own."""
        with self._client() as client:
            for statement in statements:
                client.execute(statement)

    def write_together(self, *statements: str) -> None:
        """Run statements of a client in one transaction."""
        with self._client() as client, transaction(client):
            for statement in statements:
                client.execute(statement)

    def write_here(self, *statements: str) -> None:
        """Run statements of a client in one transaction, whose writes stay in the database."""
        with self._client() as client:
            client.execute("PRAGMA foreign_keys = ON")
            client.execute("BEGIN IMMEDIATE")
            client.execute("INSERT INTO _slackwater_local (op) VALUES ('begin')")
            for statement in statements:
                client.execute(statement)
            client.execute("INSERT INTO _slackwater_local (op) VALUES ('end')")
            client.execute("COMMIT")

    def roll_back(self, statement: str) -> None:
        """Run a statement of a client in a transaction that is rolled back."""
        with self._client() as client:
            client.execute("BEGIN")
            client.execute(statement)
            client.execute("ROLLBACK")

    def truncate(self) -> None:
        """Empty the table as one change."""
        with self._client() as client:
            truncate(client, ITEMS.name)

    @contextmanager
    def holding(self, statement: str) -> Iterator[None]:
        """A client's transaction that has run this statement, committed at the end."""
        with self._client() as client:
            client.execute("BEGIN IMMEDIATE")
            client.execute(statement)
            yield
            client.execute("COMMIT")

    def rows(self) -> Sequence[Row]:
        """The rows by id."""
        with self._client() as client:
            return client.execute("SELECT id, name, price FROM items ORDER BY id").fetchall()
