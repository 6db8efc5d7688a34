"""Writes the rows of one table as the hub has them: an upsert of what an item's image holds."""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from connectors import wire
from connectors.sqlite import sql
from connectors.sqlite.catalog import BINARY, read
from connectors.sqlite.columns import StoredColumn
from connectors.sqlite.spellings import Stored, spelled
from streaming.core.model.change import Op
from streaming.core.model.record import Item
from streaming.core.model.table import ColumnType, Table

SAME = "_slackwater_same"
"""The SQL function of the agent's own connection that compares two spellings of a value."""


@dataclass(frozen=True, slots=True)
class UpsertSql:
    """The statements that write these columns of a row; the key's values stand last."""

    update: str
    insert: str


@dataclass(slots=True)
class RowWriter:
    """One table as it is written by the agent; the text of each statement is made once."""

    table: Table
    columns: Mapping[str, StoredColumn]
    upserts: dict[tuple[str, ...], UpsertSql] = field(default_factory=dict)

    def write(self, connection: sqlite3.Connection, item: Item) -> None:
        """Write or delete the item's row, or all; WireError: a value does not fit its column."""
        if item.op == Op.TRUNCATE:
            connection.execute(f"DELETE FROM {sql.name(self.table.name)}")  # noqa: S608
            return
        key = self._values(item.key)
        if item.op == Op.DELETE or item.after is None:
            delete = f"DELETE FROM {sql.name(self.table.name)} WHERE {self._where(1)}"  # noqa: S608
            connection.execute(delete, [key[name] for name in self.table.key])
            return
        row = self._values(item.after) | key
        rest = tuple(name for name in row if name not in key)
        upsert = self.upserts.get(rest) or self.upserts.setdefault(rest, self._upsert(rest))
        values = [row[name] for name in (*rest, *self.table.key)]
        if not connection.execute(upsert.update, values).rowcount:
            connection.execute(upsert.insert, values)

    def _values(self, image: str) -> dict[str, Stored]:
        """The values of an image or key as the table holds them."""
        try:
            found: dict[str, object] = orjson.loads(image)
            return {name: self.columns[name].from_wire(value) for name, value in found.items()}
        except (ValueError, KeyError):
            wire.image_values(image, self.table)  # which says what is wrong
            raise

    def _where(self, first: int) -> str:
        """The condition on the key, whose parameters are numbered from `first`."""
        return " AND ".join(
            f"{sql.name(name)} = ?{first + place} COLLATE {BINARY}"
            for place, name in enumerate(self.table.key)
        )

    def _upsert(self, rest: tuple[str, ...]) -> UpsertSql:
        table = sql.name(self.table.name)
        names = (*rest, *self.table.key)
        set_ = rest or names
        sets = ", ".join(self._set(name, place) for place, name in enumerate(set_, 1))
        columns = ", ".join(map(sql.name, names))
        marks = ", ".join(f"?{place}" for place, _ in enumerate(names, 1))
        where = self._where(len(rest) + 1)
        return UpsertSql(
            f"UPDATE OR ABORT {table} SET {sets} WHERE {where}",  # noqa: S608 quoted
            f"INSERT OR ABORT INTO {table} ({columns}) VALUES ({marks})",  # noqa: S608 quoted
        )

    def _set(self, name: str, place: int) -> str:
        """The assignment of a column; text that means the same value already stays as it is."""
        column, kind = sql.name(name), self.columns[name].kind
        if not self.columns[name].has_spellings:
            return f"{column} = ?{place}"
        same = f"{SAME}({column}, ?{place}, '{kind}')"
        return f"{column} = CASE WHEN {same} THEN {column} ELSE ?{place} END"


def writers(connection: sqlite3.Connection, tables: Iterable[Table]) -> dict[str, RowWriter]:
    """The writer of each table, by its name, for this connection."""
    connection.create_function(SAME, 3, _is_same, deterministic=True)
    return {table.name: RowWriter(table, read(connection, table).stored(table)) for table in tables}


def _is_same(found: Stored, written: Stored, kind: str) -> bool:
    """Return whether two values of a column are spellings of one."""
    if found == written or found is None or written is None:
        return found == written
    meant = spelled(found, ColumnType(kind))
    return meant is not None and meant == spelled(written, ColumnType(kind))
