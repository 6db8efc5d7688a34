"""The rows of a batch that is written item by item (connectors/agent/each_item.py), in SQLite."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from connectors.agent.applying import UnknownTableError, writer_of
from connectors.agent.each_item import DatabaseRefusal
from connectors.agent.lacking import LackingColumnError
from connectors.sqlite.apply.rows import RowWriter
from connectors.sqlite.apply.standing import NotStandingError
from connectors.sqlite.schema.conflict_clauses import NOT_NULL, UNIQUE
from streaming.core.model.errors import WireError
from streaming.core.model.refusal import COLUMN
from streaming.core.records.record import Item, Refused

CODES = {
    "SQLITE_CONSTRAINT_UNIQUE": "unique",
    "SQLITE_CONSTRAINT_PRIMARYKEY": "unique",
    "SQLITE_CONSTRAINT_ROWID": "unique",
    "SQLITE_CONSTRAINT_FOREIGNKEY": "foreign_key",
    "SQLITE_CONSTRAINT_CHECK": "check",
    "SQLITE_CONSTRAINT_NOTNULL": "check",
    "SQLITE_CONSTRAINT_DATATYPE": "type",
    "SQLITE_MISMATCH": "type",
    "SQLITE_TOOBIG": "size",
}
"""SQLite's error name -> the code of a refusal; anything else is `other`."""

CONSTRAINT_DATATYPE = 3091
"""What a STRICT table says of a value of another type; Python 3.11 has no name for it."""

RAISED = {UNIQUE: "unique", NOT_NULL: "check"}
"""What a trigger says that stands for a constraint -> the code of a refusal."""


class StartAgainError(Exception):
    """The batch starts again without this item: its refusal ended the transaction.

    Or it is a truncate, whose rows are then deleted one by one.
    """

    def __init__(self, place: int, refusal: Refused) -> None:
        super().__init__(refusal.text)
        self.place = place
        self.refusal = refusal


def refusal_code(error: Exception) -> str | None:
    """The code of a refusal; None: the database itself failed, and nothing is refused."""
    if isinstance(error, UnknownTableError):
        return "other"
    if isinstance(error, LackingColumnError):
        return COLUMN
    if isinstance(error, NotStandingError):
        return "trigger"
    if isinstance(error, WireError | OverflowError):
        return "type"
    name = getattr(error, "sqlite_errorname", "")
    if getattr(error, "sqlite_errorcode", 0) == CONSTRAINT_DATATYPE:
        name = "SQLITE_CONSTRAINT_DATATYPE"
    if name == "SQLITE_CONSTRAINT_TRIGGER":
        return next((code for text, code in RAISED.items() if str(error).startswith(text)), "other")
    known = name in CODES or name.startswith("SQLITE_CONSTRAINT") or name == "SQLITE_ERROR"
    return CODES.get(name, "other") if known or not name else None


@dataclass(frozen=True, slots=True)
class SqliteItemRows:
    """The rows of a batch, written by an open connection within its transaction (ItemRows)."""

    connection: sqlite3.Connection
    writers: Mapping[str, RowWriter]
    items: Sequence[Item]

    def write(self, place: int) -> None:
        """Write or delete the row of this item."""
        self._writer(place).write(self.connection, self.items[place])

    def take_out(self, place: int) -> None:
        """Take its row out of the way of others, if there is one."""
        self._writer(place).take_out(self.connection, self.items[place])

    def put_in(self, place: int) -> None:
        """Write its row, which may have been taken out."""
        self._writer(place).put_in(self.connection, self.items[place])

    def keys_in_way(self, place: int, refused: Refused) -> set[str]:
        """The keys of the rows that hold a unique value that its row wants; empty: not known."""
        return self._writer(place).in_way(self.connection, self.items[place], refused.text)

    @contextmanager
    def moving(self, tables: set[str]) -> Iterator[None]:
        """Within it rows of these tables are taken out and put in."""
        opened = [self.writers[table].taken for table in sorted(tables)]
        for taken in opened:
            taken.open(self.connection)
        yield
        for taken in opened:
            taken.close(self.connection)

    def refusal(self, place: int, error: Exception) -> DatabaseRefusal | None:
        """Why the database refuses its row; None: it is the database that failed."""
        del place
        is_known = isinstance(error, sqlite3.Error | OverflowError | WireError)
        code = refusal_code(error) if is_known else None
        return None if code is None else DatabaseRefusal(code, str(error))

    def check_goes_on(self, refused: Refused, place: int, error: Exception) -> None:
        """StartAgainError: it is a truncate, or its refusal has ended the transaction."""
        is_truncate = self.items[place].is_of_table and refused.table in self.writers
        if is_truncate or not self.connection.in_transaction:
            raise StartAgainError(place, refused) from error

    def _writer(self, place: int) -> RowWriter:
        return writer_of(self.writers, self.items[place])
