"""A replica's outbox: its own topic as a local file, from which its packets are cut.

Records have places 1, 2, 3 and on. What the hub is known to have is scrubbed, except for the last
record of it: by its digest the hub knows that the next packet continues what it has.
"""

import hashlib
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Self

from streaming.core.model.errors import StateError

FORMAT = 1
"""The format of the file; a program refuses one of a larger one."""

_CREATE = """
CREATE TABLE outbox (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  format INTEGER NOT NULL,
  id TEXT NOT NULL,
  replica TEXT NOT NULL,
  is_lost INTEGER NOT NULL,  -- 1: nothing was published since it was made in place of a lost one
  exported INTEGER NOT NULL DEFAULT 0,  -- packets were written of all records up to this place
  opno INTEGER NOT NULL DEFAULT 0,  -- the largest own opno up to there
  scrubbed INTEGER NOT NULL DEFAULT 0,  -- the records before this place are gone; from here on: ...
  scrubbed_csn TEXT NOT NULL DEFAULT '',  -- ... the largest own CSN of those, ...
  scrubbed_opno INTEGER NOT NULL DEFAULT 0,  -- ... opno, ...
  scrubbed_epoch INTEGER NOT NULL DEFAULT 0,  -- ... and epoch, ...
  scrubbed_session TEXT,  -- ... the session in force behind them, ...
  scrubbed_own TEXT  -- ... and the largest own CSN that is committed
);
CREATE TABLE record (place INTEGER PRIMARY KEY, value BLOB NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """Up to which place records are gone, and what they were.

    `csn`, `opno`, `epoch`: the largest. `session`: in force behind them. `own`: the largest own CSN
    of a committed change.
    """

    place: int = 0
    csn: str = ""
    opno: int = 0
    epoch: int = 0
    session: str | None = None
    own: str | None = None


class Outbox:
    """The open outbox of one replica: the Publisher of its agent, which alone has it open."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection

    @classmethod
    def open(cls, path: Path, replica: str, *, has_published: bool) -> Self:
        """Open it, or make it; StateError if it cannot be used or another agent has it open.

        `has_published`: the database has been in a session, so one that is made anew is in place of
        a lost one.
        """
        with _errors(path):
            connection = sqlite3.connect(path, isolation_level=None, timeout=0)
        made = cls(path, connection)
        try:
            with _errors(path):
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("PRAGMA synchronous = EXTRA")
                with made._transaction("BEGIN EXCLUSIVE"):
                    if not made._row("SELECT count(*) FROM sqlite_schema")[0]:
                        made._create(replica, is_lost=has_published)
                made._check(replica)
        except BaseException:
            connection.close()
            raise
        return made

    def _create(self, replica: str, *, is_lost: bool) -> None:
        for statement in _CREATE.split(";\n")[:2]:
            self._connection.execute(statement)
        self._connection.execute(
            "INSERT INTO outbox (one, format, id, replica, is_lost) VALUES (1, ?, ?, ?, ?)",
            (FORMAT, str(uuid.uuid4()), replica, is_lost),
        )

    def _check(self, replica: str) -> None:
        found, owner = self._row("SELECT format, replica FROM outbox")
        if found > FORMAT:
            raise StateError(f"outbox {self.path} is of format {found}: upgrade this program")
        if owner != replica:
            raise StateError(
                f"outbox {self.path} is of replica {owner}, not of {replica}: name another file"
                " with --outbox"
            )

    def close(self) -> None:
        """Close it; nothing is lost by not doing so."""
        self._connection.close()

    # -- what the agent publishes ---------------------------------------------------------------

    def publish(self, values: list[bytes]) -> None:
        """Append records and return once the disk has them; StateError if it cannot take them."""
        with _errors(self.path), self._transaction():
            (place,) = self._row("SELECT ifnull(max(place), 0) FROM record")
            self._connection.executemany(
                "INSERT INTO record (place, value) VALUES (?, ?)",
                enumerate(values, place + 1),
            )
            self._connection.execute("UPDATE outbox SET is_lost = 0")

    def read(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Every record behind the first `offset` ones that is left, as (its place - 1, value)."""
        yield from ((place - 1, value) for place, value in self.records(offset))

    def last(self) -> bytes | None:
        """The last record; None: there is none."""
        return self._value(self.end)

    @property
    def is_connected(self) -> bool:
        """It always is."""
        return True

    # -- places ---------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """By what the hub knows it from another one of this replica."""
        with _errors(self.path):
            return str(self._row("SELECT id FROM outbox")[0])

    @property
    def is_lost(self) -> bool:
        """Return whether it was made in place of a lost one, and nothing was published since."""
        with _errors(self.path):
            return bool(self._row("SELECT is_lost FROM outbox")[0])

    @property
    def end(self) -> int:
        """The place of the last record; 0: there is none."""
        with _errors(self.path):
            return int(self._row("SELECT ifnull(max(place), 0) FROM record")[0])

    @property
    def scrubbed(self) -> Scrubbed:
        """What is gone from it, because the hub has it."""
        with _errors(self.path):
            return Scrubbed(
                *self._row(
                    "SELECT scrubbed, scrubbed_csn, scrubbed_opno, scrubbed_epoch,"
                    " scrubbed_session, scrubbed_own FROM outbox"
                )
            )

    def unknown_at_hub(self, got: int) -> int:
        """How many records the hub is not known to have; `got`: the last one that it has."""
        return self.end - max(got, self.scrubbed.place)

    def size_bytes(self) -> int:
        """The size of the file, which does not shrink."""
        query = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        with _errors(self.path):
            return int(self._row(query)[0])

    @property
    def exported(self) -> tuple[int, int]:
        """Up to which place packets were written, and the largest own opno up to there."""
        with _errors(self.path):
            place, opno = self._row("SELECT exported, opno FROM outbox")
            return int(place), int(opno)

    def records(self, behind: int) -> Iterator[tuple[int, bytes]]:
        """(place, value) of the records behind this place that are left, in order."""
        with _errors(self.path):
            behind = max(behind, self.scrubbed.place)
            query = "SELECT place, value FROM record WHERE place > ? ORDER BY place"
            with closing(self._connection.execute(query, (behind,))) as rows:
                yield from rows

    def newest_first(self) -> Iterator[bytes]:
        """The records that are left, from the last one on."""
        with _errors(self.path):
            query = "SELECT value FROM record WHERE place > ? ORDER BY place DESC"
            with closing(self._connection.execute(query, (self.scrubbed.place,))) as rows:
                yield from (value for (value,) in rows)

    def hash_of(self, place: int) -> str | None:
        """SHA-256 of the record at a place; None at place 0."""
        value = self._value(place)
        return None if value is None else hashlib.sha256(value).hexdigest()

    def mark_exported(self, place: int, opno: int) -> None:
        """Store that packets were written of everything up to this place."""
        with _errors(self.path), self._transaction():
            self._connection.execute("UPDATE outbox SET exported = ?, opno = ?", (place, opno))

    def scrub(self, scrubbed: Scrubbed) -> None:
        """Delete what is before a place that the hub is known to have."""
        with _errors(self.path), self._transaction():
            self._connection.execute(
                "UPDATE outbox SET scrubbed = ?1, scrubbed_csn = ?2, scrubbed_opno = ?3,"
                " scrubbed_epoch = ?4, scrubbed_session = ?5, scrubbed_own = ?6,"
                " exported = max(exported, ?1)",
                astuple(scrubbed),
            )
            self._connection.execute("DELETE FROM record WHERE place < ?", (scrubbed.place,))

    def renew(self) -> None:
        """Empty it and give it another id, as one that was lost: the hub has more than it holds."""
        with _errors(self.path), self._transaction():
            replica = self._row("SELECT replica FROM outbox")[0]
            self._connection.execute("DROP TABLE outbox")
            self._connection.execute("DROP TABLE record")
            self._create(replica, is_lost=True)

    def _value(self, place: int) -> bytes | None:
        with _errors(self.path):
            query = "SELECT value FROM record WHERE place = ?"
            row = self._connection.execute(query, (place,)).fetchone()
            return None if row is None else bytes(row[0])

    def _row(self, query: str) -> tuple[Any, ...]:
        with closing(self._connection.execute(query)) as cursor:
            row: tuple[Any, ...] = cursor.fetchone()
        return row

    @contextmanager
    def _transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
        self._connection.execute(begin)
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """StateError for what SQLite says."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname.startswith("SQLITE_BUSY"):
            text = f"another agent has outbox {path} open: stop it first"
            raise StateError(text) from error
        raise StateError(f"outbox {path}: {error}: make the file writable, with space") from error
    except sqlite3.Error as error:
        raise StateError(
            f"outbox {path} cannot be read ({error}): put it back from a copy, or move it away; the"
            " agent then makes a new one, and waits for a packet that says what the hub has"
        ) from error
