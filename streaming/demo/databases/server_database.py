"""A database of a PostgreSQL server as the database of a replica."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from connectors.postgres import sql
from connectors.postgres.connection import connected
from connectors.postgres.install.system import read_capture, read_position
from connectors.postgres.log.lsn import parse_lsn
from connectors.sqlite.values.columns import stored
from streaming.core.model.change import Change
from streaming.core.model.table import Table
from streaming.core.records.record import Applied, Refused
from streaming.demo.databases import second_reader
from streaming.demo.databases.replica_evidence import (
    JournaledBatch,
    JournaledWrite,
    Key,
    ReplicaEvidence,
    Typed,
    typed,
)
from streaming.demo.databases.second_reader import LoggedEntry


@dataclass(slots=True)
class ServerSession:
    """A connection of an ordinary client; `written`: the end of the log behind its last write."""

    connection: sql.Session
    rows: int = 0
    written: int = 0

    def execute(self, query: str, values: Sequence[Any] = ()) -> Any:  # noqa: ANN401 a cursor
        """Run a statement."""
        done = self.connection.execute(_with_marks(query), values)
        self.rows += max(done.rowcount, 0)
        return done

    def execute_each(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run it once for each of these."""
        with self.connection.cursor() as cursor:
            cursor.executemany(_with_marks(query), rows)
            self.rows += max(cursor.rowcount, 0)

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """A transaction, whose changes are one for the hub as well."""
        self.rows = 0
        with self.connection.transaction():
            yield
        if self.rows:
            query = "SELECT pg_current_wal_insert_lsn()::text"
            (text,) = self.connection.execute(query).fetchone() or ("0/0",)
            self.written = parse_lsn(text)

    group = atomic

    def judged(self) -> Callable[[], bool]:
        """What returns whether the RUV covers what the topic had when it had the last write."""
        last: str | None = None

        def is_judged() -> bool:
            nonlocal last
            if last is None:
                capture = read_capture(self.connection)
                if capture is None or parse_lsn(capture.lsn) < self.written:
                    return not self.written
                last = capture.csn or ""
            return not last or read_position(self.connection).position.ruv.covers(last)

        return is_judged


@dataclass(frozen=True, slots=True)
class ServerDatabase:
    """A database that is attached; its log is read once more, by a slot of the demonstration."""

    place: str
    replica: str
    rid: int
    tables: Mapping[str, Table] = field(repr=False)

    @contextmanager
    def session(self) -> Iterator[ServerSession]:
        """A connection for one thread, closed at the end."""
        with connected(self.place) as connection:
            yield ServerSession(connection)

    def published_all(self) -> bool:
        """Return whether the topic has what the log has; the last hello says what it left out."""
        with connected(self.place) as connection:
            answered = read_position(connection).answered
            capture = read_capture(connection)
            published = int(capture.published) if capture else 0
            return all(
                one.entry.id <= published
                for one in self._logged(connection)
                if not isinstance(one.entry.record, Applied) or one.entry.record.epoch > answered
            )

    def last_write(self) -> str | None:
        """The largest CSN that its log gives, or None."""
        with connected(self.place) as connection:
            records = (one.entry.record for one in self._logged(connection))
            return max((one.csn for one in records if isinstance(one, Change)), default=None)

    def agent_session(self) -> str | None:
        """The session that the replica's agent started last."""
        with connected(self.place) as connection:
            return read_position(connection).position.session

    def evidence(self, name: str, rid: int, tables: Mapping[str, Table]) -> ReplicaEvidence:
        """Everything that it holds and remembers."""
        with connected(self.place) as connection:
            logged = self._logged(connection)
            refused = sum(isinstance(one.entry.record, Refused) for one in logged)
            rows = _rows(connection, tables)
            return ReplicaEvidence(name, rid, rows, _writes(logged), _applied(logged), refused)

    def _logged(self, connection: sql.Session) -> list[LoggedEntry]:
        return second_reader.read_all(connection, self.replica, self.rid, self.tables)


def _with_marks(query: str) -> bytes:
    return query.replace("?", "%s").encode()


def _rows(connection: sql.Session, tables: Mapping[str, Table]) -> dict[Key, Typed]:
    """The rows by psycopg's own reading of their types, without the agent's."""
    rows = dict[Key, Typed]()
    for name, table in tables.items():
        columns = list(table.columns)
        places = [columns.index(column) for column in table.key]
        listed = ", ".join(map(sql.name, columns))
        query = sql.statement(f"SELECT {listed} FROM {sql.name(name)}")  # noqa: S608 quoted
        for row in connection.execute(query.encode()):
            values = [stored(_in_utc(value)) for value in row]
            rows[name, tuple(values[place] for place in places)] = typed(values)
    return rows


def _in_utc(value: Any) -> Any:  # noqa: ANN401 any value of psycopg
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def _writes(logged: Sequence[LoggedEntry]) -> tuple[JournaledWrite, ...]:
    return tuple(
        JournaledWrite(one.entry.record, one.entry.id, one.at_ms)
        for one in logged
        if isinstance(one.entry.record, Change)
    )


def _applied(logged: Sequence[LoggedEntry]) -> tuple[JournaledBatch, ...]:
    found = ((one, one.entry.record) for one in logged)
    return tuple(
        JournaledBatch(
            one.entry.id,
            one.at_ms,
            record.epoch,
            record.covers,
            record.covers if record.reached is None else record.reached,
            record.ruv,
        )
        for one, record in found
        if isinstance(record, Applied)
    )
