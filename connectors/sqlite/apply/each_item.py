"""Writes a batch item by item where the database refuses some: the others are not held up.

An item that is refused is tried again behind the others, which may have removed its cause: of rows
that were written several times while the replica was away, only the last write is sent. One that
wants a unique value is then written with the rows of the batch that are in its way, and those in
theirs. So a row is refused only if it cannot stand with all of these behind it; of
two rows of the batch that cannot both stand, the one that could be written later in this order.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from connectors.agent.applying import NO_CSN, RowName, UnknownTableError, Way, last_of_rows
from connectors.sqlite.apply.rows import RowWriter
from connectors.sqlite.apply.standing import NotStandingError
from connectors.sqlite.schema.conflict_clauses import NOT_NULL, UNIQUE
from streaming.core.model.errors import WireError
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


def writer_of(writers: Mapping[str, RowWriter], item: Item) -> RowWriter:
    """The writer of the item's table."""
    writer = writers.get(item.table)
    if writer is None:
        raise UnknownTableError(f"table {item.table} is not configured here")
    return writer


@dataclass(slots=True)
class EachItem:
    """A batch within its transaction; `refused`: place -> why an item is not applied.

    `ended`: the places that ended an earlier transaction, which are not tried.
    """

    connection: sqlite3.Connection
    writers: Mapping[str, RowWriter]
    hub_epoch: int
    items: Sequence[Item]
    ended: Mapping[int, Refused]
    refused: dict[int, Refused] = field(default_factory=dict)

    def write(self) -> dict[int, Refused]:
        """Write the items; what is refused, by place."""
        self._write([place for place in range(len(self.items)) if place not in self.ended])
        is_better = True
        while is_better and self.refused:
            is_better = self._write(last_of_rows(self.items, self.refused))
            is_better |= self._write_with_others(last_of_rows(self.items, self.refused))
        return self.refused | dict(self.ended)

    def _write(self, places: Iterable[int]) -> bool:
        """Write these items, each by itself; return whether one was written."""
        failed = [self._try(place, RowWriter.write) for place in places]
        return not all(failed)

    def _write_with_others(self, places: Iterable[int]) -> bool:
        """Write those of these rows whose way can be made free; return whether some were."""
        stuck = [place for place in places if self.refused[place].code == "unique"]
        by_row = {(self.items[p].table, self.items[p].key): p for p in stuck}
        closed = set[int]()
        with self._displaced_rows({self.items[place].table for place in stuck}):
            for place in stuck:
                if place in self.refused and place not in closed:
                    self._write_in_its_way(place, Way(by_row, closed, {place: None}, [place]))
        return any(place not in self.refused for place in stuck)

    @contextmanager
    def _displaced_rows(self, tables: Iterable[str]) -> Iterator[None]:
        opened = [self.writers[table].taken for table in sorted(tables)]
        for taken in opened:
            taken.open(self.connection)
        yield
        for taken in opened:
            taken.close(self.connection)

    def _write_in_its_way(self, root: int, way: Way) -> None:
        """Write a row and all that is in its way, or nothing."""
        self.connection.execute("SAVEPOINT way")
        before = dict(self.refused)
        self._try(root, RowWriter.take_out)
        while way.waiting:
            place = way.waiting[-1]
            if not self._try(place, RowWriter.put_in):
                way.waiting.remove(place)
                continue
            others = way.others(place, self._keys_in_way(place))
            refused = [other for other in others if self._try(other, RowWriter.take_out)]
            if refused or not others:
                way.close(place)
                self.connection.execute("ROLLBACK TO way")
                self.refused = before
                break
        self.connection.execute("RELEASE way")

    def _keys_in_way(self, place: int) -> set[RowName] | None:
        """The rows that hold a unique value that this one wants; None: it is not known."""
        item, refusal = self.items[place], self.refused[place]
        if refusal.code != "unique":
            return set()
        keys = self.writers[item.table].in_way(self.connection, item, refusal.text)
        return {(item.table, key) for key in keys} or None

    def _try(
        self, place: int, act: Callable[[RowWriter, sqlite3.Connection, Item], object]
    ) -> bool:
        """Do something with an item's row; return whether the database refused it."""
        item = self.items[place]
        self.connection.execute("SAVEPOINT item")
        try:
            act(writer_of(self.writers, item), self.connection, item)
        except (sqlite3.Error, OverflowError, WireError) as error:
            code = refusal_code(error)
            if code is None:
                raise
            csn = item.csn or NO_CSN
            refusal = Refused(self.hub_epoch, csn, item.table, item.key, code, str(error))
            is_truncate = item.is_of_table and item.table in self.writers
            if is_truncate or not self.connection.in_transaction:
                raise StartAgainError(place, refusal) from error
            self.connection.execute("ROLLBACK TO item")
            self.connection.execute("RELEASE item")
            self.refused[place] = refusal
            return True
        self.connection.execute("RELEASE item")
        self.refused.pop(place, None)
        return False
