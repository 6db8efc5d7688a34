"""A file of SQLite as the database of a replica."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectors.sqlite import sql
from connectors.sqlite.journal import entries as journal
from connectors.sqlite.transaction import atomic, transaction
from streaming.core.model.table import Table
from streaming.demo.databases.replica_evidence import (
    JournaledBatch,
    JournaledWrite,
    Key,
    ReplicaEvidence,
    Typed,
    typed,
)

BUSY_S = 60.0


@dataclass(frozen=True, slots=True)
class FileSession:
    """A connection of ordinary SQLite."""

    connection: sqlite3.Connection

    def execute(self, query: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run a statement."""
        return self.connection.execute(query, values)

    def execute_each(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run it once for each of these."""
        self.connection.executemany(query, rows)

    def atomic(self) -> AbstractContextManager[object]:
        """A transaction; each of its changes is one of its own for the hub."""
        return atomic(self.connection)

    def group(self) -> AbstractContextManager[object]:
        """A transaction whose changes are one for the hub as well."""
        return transaction(self.connection)

    def judged(self) -> Callable[[], bool]:
        """What returns whether the RUV covers the last change of the journal."""
        row = self.connection.execute(
            "SELECT csn FROM _slackwater_journal WHERE kind = 'change' ORDER BY id DESC LIMIT 1"
        ).fetchone()

        def is_judged() -> bool:
            (text,) = self.connection.execute("SELECT ruv FROM _slackwater_position").fetchone()
            return row is None or journal.ruv_of(text).covers(str(row[0]))

        return is_judged


@dataclass(frozen=True, slots=True)
class SqliteReplica:
    """A file, and what its agent's own tables say."""

    file: Path

    @property
    def place(self) -> str:
        """The file."""
        return str(self.file)

    @contextmanager
    def session(self) -> Iterator[FileSession]:
        """A connection for one thread, closed at the end."""
        connection = sqlite3.connect(self.file, timeout=BUSY_S, isolation_level=None)
        with closing(connection):
            yield FileSession(connection)

    def published_all(self) -> bool:
        """Return whether every row of the journal is in the replica's topic."""
        (is_so,) = self._query_row(
            "SELECT NOT EXISTS (SELECT 1 FROM _slackwater_journal WHERE id > published)"
            " FROM _slackwater_position"
        )
        return bool(is_so)

    def last_write(self) -> str | None:
        """The largest CSN that was issued here, or None."""
        (csn,) = self._query_row("SELECT max(csn) FROM _slackwater_journal WHERE kind = 'change'")
        return None if csn is None else str(csn)

    def agent_session(self) -> str | None:
        """The session that the replica's agent started last."""
        (session,) = self._query_row("SELECT session FROM _slackwater_position")
        return None if session is None else str(session)

    def evidence(self, name: str, rid: int, tables: Mapping[str, Table]) -> ReplicaEvidence:
        """Everything that it holds and remembers."""
        place = f"{self.file.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(place, uri=True)) as file:
            return ReplicaEvidence(
                name, rid, _rows(file, tables), _writes(file, rid), _applied(file), _refused(file)
            )

    def _query_row(self, query: str) -> tuple[Any, ...]:
        with closing(sqlite3.connect(self.file, timeout=10)) as connection:
            row: tuple[Any, ...] = connection.execute(query).fetchone()
        return row


def _rows(file: sqlite3.Connection, tables: Mapping[str, Table]) -> dict[Key, Typed]:
    rows = dict[Key, Typed]()
    for name, table in tables.items():
        columns = list(table.columns)
        listed = ", ".join(map(sql.name, columns))
        places = [columns.index(column) for column in table.key]
        for row in file.execute(f"SELECT {listed} FROM {sql.name(name)}"):  # noqa: S608 quoted
            rows[name, tuple(row[place] for place in places)] = typed(row)
    return rows


def _writes(file: sqlite3.Connection, rid: int) -> tuple[JournaledWrite, ...]:
    """A change of a group commits with the group's last row."""
    commits = dict(
        file.execute("SELECT prim_csn, at FROM _slackwater_journal WHERE kind = 'commit'")
    )
    times = file.execute("SELECT id, at FROM _slackwater_journal WHERE kind = 'change' ORDER BY id")
    return tuple(
        JournaledWrite(change, place, commits.get(change.prim_csn, at_ms))
        for change, (place, at_ms) in zip(journal.changes(file, rid), times, strict=True)
    )


def _applied(file: sqlite3.Connection) -> tuple[JournaledBatch, ...]:
    rows = file.execute(
        "SELECT id, at, epoch, covers, hub_epoch, ruv FROM _slackwater_journal"
        " WHERE kind = 'applied' ORDER BY id"
    )
    return tuple(
        JournaledBatch(place, at_ms, epoch, covers, hub_epoch, journal.ruv_of(ruv))
        for place, at_ms, epoch, covers, hub_epoch, ruv in rows
    )


def _refused(file: sqlite3.Connection) -> int:
    count = file.execute("SELECT count(*) FROM _slackwater_journal WHERE kind = 'refused'")
    return int(count.fetchone()[0])
