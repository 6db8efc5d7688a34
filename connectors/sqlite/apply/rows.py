"""Writes the rows of one table as the hub has them: an upsert of what an item's image holds.

The columns that an item names as unset get their default with it.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from connectors import wire
from connectors.agent.lacking import LackingColumns
from connectors.sqlite import sql
from connectors.sqlite.apply.displaced_rows import DisplacedRows, displaced_rows
from connectors.sqlite.apply.standing import StandingCheck
from connectors.sqlite.apply.unset import ColumnDefaults
from connectors.sqlite.schema.catalog import BINARY, read
from connectors.sqlite.schema.conflict_clauses import keep_to_abort, leave_to_clauses
from connectors.sqlite.schema.user_triggers import user_triggers
from connectors.sqlite.values.columns import StoredColumn, image_sql
from connectors.sqlite.values.image import wire_image
from connectors.sqlite.values.spellings import Stored, spelled
from connectors.sqlite.values.text import encoding_of
from streaming.core.model.change import Op
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Item

_AS_THEY_ARE: Mapping[str, Table] = {}

SAME = "_slackwater_same"
"""The SQL function of the agent's own connection that compares two spellings of a value."""


@dataclass(frozen=True, slots=True)
class UpsertSql:
    """The statements that write these columns of a row; the key's values stand last."""

    rest: tuple[str, ...]  # the columns but the key's
    names: tuple[str, ...]  # all columns, in the order of the values
    update: str
    insert: str
    same: Mapping[str, str]  # column -> the condition that it holds its value


@dataclass(slots=True)
class RowWriter:
    """One table as it is written by the agent; the text of each statement is made once.

    No statement has a conflict clause: it would take the place of those in the user's triggers.
    `table`: as the database has it. `taken`: the rows that are out of the way of others for a
    moment. `lacking`: its columns that are not there. `standing`: of a table with triggers of the
    user's. `defaults`: of its columns but the key's.
    """

    table: Table
    columns: Mapping[str, StoredColumn]
    taken: DisplacedRows
    lacking: LackingColumns
    defaults: ColumnDefaults
    standing: StandingCheck | None = None
    upserts: dict[tuple[str, ...], UpsertSql] = field(default_factory=dict)

    def write(self, connection: sqlite3.Connection, item: Item) -> None:
        """Write or delete the item's row, or all; WireError: it cannot be, or does not stand so."""
        if item.is_of_table:
            self._delete(connection, "1", [])
            return
        if item.op == Op.DELETE or item.after is None:
            self._delete(connection, *self.condition(item.key))
            return
        self._write(connection, *self._upsert_of(item))

    def take_out(self, connection: sqlite3.Connection, item: Item) -> None:
        """Take the item's row out of the way of others, if there is one."""
        self.taken.take_out(connection, self.condition(item.key)[1])

    def put_in(self, connection: sqlite3.Connection, item: Item) -> None:
        """Write the item's row, which may have been taken out; WireError as by write."""
        if item.after is None:
            self.write(connection, item)
            return
        upsert, values = self._upsert_of(item)
        if not self.taken.put_in(connection, *self._key_first(upsert, values)):
            self.write(connection, item)
        elif self.standing:
            where = _has_key(self.table, len(upsert.rest) + 1)
            self.standing.check_written(connection, upsert.same, where, values, "update")

    def in_way(self, connection: sqlite3.Connection, item: Item, text: str) -> set[str]:
        """The keys of the rows that hold what the item's row wants; empty: they are not known.

        `text`: what the database says of it.
        """
        upsert, unordered = self._upsert_of(item)
        values, new = self._key_first(upsert, unordered)
        given = {n: f"?{place}" for place, n in enumerate((*self.table.key, *upsert.rest), 1)}
        where = self.taken.in_way(text, new, given)
        if where is None:
            return set()
        stored = image_sql({name: self.columns[name] for name in self.table.key}, "x")
        every = f"?{len(values)} IS ?{len(values)}"  # as many parameters as there are values
        query = f"SELECT {stored} FROM main.{sql.name(self.table.name)} x WHERE {where} AND {every}"  # noqa: S608
        found = connection.execute(query, values).fetchall()
        return {wire_image(captured).text for (captured,) in found}

    def has_defaults(self, connection: sqlite3.Connection, item: Item) -> bool:
        """Return whether the item's row, if it is there, holds the default of each unset column."""
        defaults = self.defaults.of(item)
        if not defaults:
            return True
        where, values = self.condition(item.key)
        same = [self._same(name, at) for at, name in enumerate(defaults, len(values) + 1)]
        differs = f"NOT ({' AND '.join(same)})"
        query = f"SELECT 1 FROM {sql.name(self.table.name)} WHERE {where} AND {differs}"  # noqa: S608
        return connection.execute(query, [*values, *defaults.values()]).fetchone() is None

    def _upsert_of(self, item: Item) -> tuple[UpsertSql, list[Stored]]:
        """The statements that write the row of an item, and their values."""
        image = self._values(item.after or "{}")
        row = self.defaults.of(item) | image | self._values(item.key)
        columns = tuple(row)
        upsert = self.upserts.get(columns)
        if upsert is None:
            upsert = self.upserts[columns] = self._upsert(columns)
        return upsert, [row[name] for name in upsert.names]

    def _key_first(
        self, upsert: UpsertSql, values: list[Stored]
    ) -> tuple[list[Stored], dict[str, str]]:
        """The values with those of the key first, and by column what is set from them."""
        rest, key = values[: len(upsert.rest)], values[len(upsert.rest) :]
        new = {name: self._new(name, at) for at, name in enumerate(upsert.rest, len(key) + 1)}
        return [*key, *rest], new

    def _delete(self, connection: sqlite3.Connection, where: str, key: list[Stored]) -> None:
        connection.execute(f"DELETE FROM {sql.name(self.table.name)} WHERE {where}", key)  # noqa: S608
        if self.standing:
            self.standing.check_deleted(connection, where, key)

    def _write(
        self, connection: sqlite3.Connection, upsert: UpsertSql, values: list[Stored]
    ) -> None:
        event = "update"
        is_new = not connection.execute(upsert.update, values).rowcount
        if is_new and self.standing:  # or a trigger ignored the update
            is_new = not self._exists(connection, values[-len(self.table.key) :])
        if is_new:
            event = "insert"
            connection.execute(upsert.insert, values)
        if self.standing:
            where = _has_key(self.table, len(values) - len(self.table.key) + 1)
            self.standing.check_written(connection, upsert.same, where, values, event)

    def _values(self, image: str) -> dict[str, Stored]:
        """The values of an image or key as the table holds them."""
        try:
            found: dict[str, object] = orjson.loads(image)
            return {name: self.columns[name].from_wire(value) for name, value in found.items()}
        except (ValueError, KeyError):
            self.lacking.check(image)
            wire.image_values(image, self.table)  # which says what is wrong
            raise

    def _exists(self, connection: sqlite3.Connection, key: list[Stored]) -> bool:
        where = _has_key(self.table, 1)
        query = f"SELECT 1 FROM {sql.name(self.table.name)} WHERE {where}"  # noqa: S608 quoted
        return connection.execute(query, key).fetchone() is not None

    def condition(self, key: str) -> tuple[str, list[Stored]]:
        """The condition on a row's key, with its parameters; WireError: it is none of the table."""
        values = self._values(key)
        return _has_key(self.table, 1), [values[name] for name in self.table.key]

    def _upsert(self, columns: tuple[str, ...]) -> UpsertSql:
        table = sql.name(self.table.name)
        rest = tuple(name for name in columns if name not in self.table.key)
        names = (*rest, *self.table.key)
        set_ = rest or names
        sets = ", ".join(
            f"{sql.name(name)} = {self._new(name, place)}" for place, name in enumerate(set_, 1)
        )
        named = ", ".join(map(sql.name, names))
        marks = ", ".join(f"?{place}" for place, _ in enumerate(names, 1))
        where = _has_key(self.table, len(rest) + 1)
        return UpsertSql(
            rest,
            names,
            f"UPDATE {table} SET {sets} WHERE {where}",  # noqa: S608 quoted
            f"INSERT INTO {table} ({named}) VALUES ({marks})",  # noqa: S608 quoted
            {name: self._same(name, place) for place, name in enumerate(rest, 1)},
        )

    def _new(self, name: str, place: int) -> str:
        """The new value of a column; text that means the same value already stays as it is."""
        if not self.columns[name].has_spellings:
            return f"?{place}"
        same = self._same(name, place)
        return f"CASE WHEN {same} THEN {sql.name(name)} ELSE ?{place} END"

    def _same(self, name: str, place: int) -> str:
        """The condition that a column holds a value, in one of its spellings."""
        column, kind = sql.name(name), self.columns[name].kind
        is_equal = f"{column} IS ?{place} COLLATE {BINARY}"
        if not self.columns[name].has_spellings:
            return is_equal
        found = f"CASE typeof({column}) WHEN 'text' THEN CAST({column} AS BLOB) ELSE {column} END"
        return f"({is_equal} OR {SAME}({found}, typeof({column}), ?{place}, '{kind}'))"


def writers(
    connection: sqlite3.Connection,
    tables: Iterable[Table],
    configured: Mapping[str, Table] = _AS_THEY_ARE,
) -> dict[str, RowWriter]:
    """The writer of each table, by its name, for this connection.

    `configured`: those of which the database lacks columns as they are configured.
    """
    encoding = encoding_of(connection)

    def is_same(found: Stored, storage: str, written: Stored, kind: str) -> bool:
        if storage == "text" and isinstance(found, bytes):  # a function gets no invalid text
            found = found.decode(encoding, errors="replace")
        return _is_same(found, written, kind)

    connection.create_function(SAME, 4, is_same, deterministic=True)
    triggers = user_triggers(connection)
    leave_to_clauses(connection)
    most = connection.getlimit(sqlite3.SQLITE_LIMIT_COLUMN)
    found = dict[str, RowWriter]()
    for table in tables:
        catalog = read(connection, table)
        keep_to_abort(connection, table, catalog)
        own = [one for one in triggers if one.on == table.name.lower()]
        standing = StandingCheck(table.name, own) if own else None
        taken = displaced_rows(
            table, catalog, _has_key(table, 1), has_triggers=bool(own), most_columns=most
        )
        missing = configured.get(table.name, table).columns.keys() - table.columns.keys()
        lacking = LackingColumns(table, frozenset(missing))
        stored = catalog.stored(table)
        rest = {name: catalog.columns[name] for name in table.columns if name not in table.key}
        found[table.name] = RowWriter(table, stored, taken, lacking, ColumnDefaults(rest), standing)
    return found


def _has_key(table: Table, first: int) -> str:
    """The condition on the key, whose parameters are numbered from `first`."""
    return " AND ".join(
        f"{sql.name(name)} = ?{first + place} COLLATE {BINARY}"
        for place, name in enumerate(table.key)
    )


def _is_same(found: Stored, written: Stored, kind: str) -> bool:
    """Return whether two values of a column are spellings of one."""
    if found == written or found is None or written is None:
        return found == written
    meant = spelled(found, ColumnType(kind))
    return meant is not None and meant == spelled(written, ColumnType(kind))
