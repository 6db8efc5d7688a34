"""Writes rows of one table as the hub has them, many with one statement.

Rows are given to the server as one JSON text whose values are all text, and cast to the types of
their columns. An image may lack columns, which keep what they have; those that an item names as
unset get their default.
"""
# ruff: noqa: S608 every name is quoted

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import orjson

from connectors import wire
from connectors.agent.lacking import LackingColumns, present_part
from connectors.postgres.schema.catalog import ServerTable, default_of, read_table
from connectors.postgres.sql import Session, literal, name, texts
from connectors.postgres.values.image import image
from streaming.core.model.errors import WireError
from streaming.core.model.table import Table
from streaming.core.model.values import json_text
from streaming.core.records.record import Item

RowTexts = Mapping[str, str | None]
"""Column -> its text in PostgreSQL, None for null."""


@dataclass(frozen=True, slots=True)
class RowWriter:
    """One table as the agent writes it, in a session of the role `replica`.

    `table`: as the database has it. `lacking`: its columns that are not there.
    """

    table: Table
    server: ServerTable
    lacking: LackingColumns

    @property
    def is_rewritten(self) -> bool:
        """Return whether a row is deleted and inserted: no UPDATE can set one of its columns."""
        return any(
            self.server.columns[column].is_always_identity
            for column in self.table.columns
            if column not in self.table.key
        )

    @property
    def _required(self) -> set[str]:
        """The columns without which no row can be inserted, and those that are replicated."""
        server = self.server.columns.values()
        return {*self.table.columns, *(one.name for one in server if one.is_required)}

    def values(self, item: Item) -> dict[str, str | None]:
        """The texts of an item's key and image; WireError: the table cannot have them."""
        return self._texts(item.after or "{}") | self.key(item.key)

    def unset(self, item: Item) -> frozenset[str]:
        """The columns of an item's row that get their default; what the table lacks is none."""
        return frozenset(item.unset).intersection(
            name
            for name in self.table.columns
            if name not in self.table.key
            and not self.server.columns[name].is_always_identity
            and not self.server.columns[name].is_generated
        )

    def key(self, key: str) -> dict[str, str | None]:
        """The texts of a key; WireError: it is none of this table."""
        values = self._texts(key)
        if values.keys() != set(self.table.key):
            raise WireError(f"{key} is not a key of table {self.table.name}")
        return values

    def key_or_none(self, key: str) -> dict[str, str | None] | None:
        """The texts of a key; None: it is none of this table."""
        try:
            return self.key(key)
        except WireError:  # so its item is refused
            return None

    @property
    def columns(self) -> list[str]:
        """The columns that hold a value of their own, replicated or not."""
        return [one.name for one in self.server.columns.values() if not one.is_generated]

    def lock(self, session: Session, keys: Sequence[RowTexts], condition: str) -> bool:
        """Lock these rows in their order; return whether the condition on `t` holds for one."""
        order = ", ".join(f"t.{name(one)}" for one in self.table.key)
        locked = (
            f"SELECT {condition} AS found FROM {self.server.sql} t, {self._source(self.table.key)}"
            f" WHERE {self._same_key} ORDER BY {order} FOR UPDATE OF t"
        )
        query = f"SELECT coalesce(bool_or(found), false) FROM ({locked}) locked"
        (found,) = session.execute(query.encode(), (_json(keys),)).fetchone() or (False,)
        return bool(found)

    def rows(
        self, session: Session, keys: Sequence[RowTexts] | None, condition: str = "true"
    ) -> list[RowTexts]:
        """The rows of these keys (None: all) for which the condition on `t` holds, whole.

        With columns that are not replicated, and without those that are generated.
        """
        columns = self.columns
        query = f"SELECT {', '.join(f't.{name(one)}' for one in columns)} FROM {self.server.sql} t"
        given: tuple[str, ...] = ()
        if keys is None:
            query += f" WHERE {condition}"
        else:
            given = (_json(keys),)
            query += f", {self._source(self.table.key)} WHERE {self._same_key} AND ({condition})"
        found = texts(session, query, given)
        return [dict(zip(columns, row, strict=True)) for row in found]

    def rows_behind(self, session: Session, last: RowTexts | None, rows_max: int) -> list[RowTexts]:
        """The next rows in the order of their keys, as `rows`; `last`: one with the key before."""
        columns, keys = self.columns, ", ".join(f"t.{name(one)}" for one in self.table.key)
        query = f"SELECT {', '.join(f't.{name(one)}' for one in columns)} FROM {self.server.sql} t"
        given: tuple[str, ...] = ()
        if last is not None:
            casts = ", ".join(map(self._cast, self.table.key))
            given = (_json([{one: last[one] for one in self.table.key}]),)
            query += f", {self._source(self.table.key)} WHERE ({keys}) > ({casts})"
        found = texts(session, f"{query} ORDER BY {keys} LIMIT {rows_max}", given)
        return [dict(zip(columns, row, strict=True)) for row in found]

    def upsert(
        self,
        session: Session,
        rows: Sequence[RowTexts],
        unset: Collection[str] = (),
        *,
        is_careful: bool,
    ) -> None:
        """Write rows of the same columns, each key once; those in `unset` get their default.

        `is_careful`: a row that is there is updated, whatever an insert of it would lack.
        """
        if self.is_rewritten:
            for row in rows:
                key = {column: row[column] for column in self.table.key}
                taken = self.take_out(session, key) or {}
                self.insert(session, written_over(taken, row, unset))
            return
        columns = tuple(rows[0])
        self._check_spelled(session, columns, rows)
        is_whole = self._required <= {*columns, *unset}
        with self._checked(session):
            if is_whole and not is_careful:
                self._insert_or_update(session, columns, rows, unset)
            else:
                self._update(session, columns, rows, unset)
                self._insert_absent(session, columns, rows)

    def delete(self, session: Session, keys: Sequence[RowTexts]) -> None:
        """Delete the rows of these keys; one that is spelled otherwise is of no row."""
        if self._respelled(session, self.table.key, keys):
            keys = [one for one in keys if not self._respelled(session, self.table.key, [one])]
        where = self._same_key
        source = self._source(self.table.key)
        self._execute(
            session, f"DELETE FROM {self.server.sql} t USING {source} WHERE {where}", keys
        )

    def _check_spelled(
        self, session: Session, columns: Sequence[str], rows: Sequence[RowTexts]
    ) -> None:
        """WireError: the server would write a value in another way, and the row would differ."""
        for column, given, held in self._respelled(session, columns, rows):
            raise WireError(f"column {column} would hold {given!r} as {held!r}")

    def _respelled(
        self, session: Session, columns: Sequence[str], rows: Sequence[RowTexts]
    ) -> list[tuple[str | None, ...]]:
        """(column, text, as the server writes it) of values that it would write in another way.

        A type has its own spelling of a value ({"a": 1}, 2024-01-05), and no log tells of it.
        """
        kinds = self.table.columns
        known = [one for one in columns if one in kinds]
        may = [one for one in known if self.server.columns[one].is_respelled(kinds[one])]
        if not may:
            return []
        doubtful = [
            row
            for row in rows
            if not all(self.server.columns[one].is_spelled(row[one]) for one in may)
        ]
        if not doubtful:
            return []
        values = ", ".join(
            f"({literal(one).replace('%', '%%')}, x.{name(one)},"
            f" CASE WHEN x.{name(one)} IS NOT NULL THEN format('%%s', {self._cast(one)}) END)"
            for one in may
        )
        query = (
            f"SELECT one.* FROM {self._source(columns)}, LATERAL (VALUES {values})"
            " one (name, given, held) WHERE given <> held"
        )
        return [tuple(row) for row in texts(session, query, (_json(doubtful),))]

    def delete_all(self, session: Session) -> None:
        """Delete every row; a TRUNCATE fails where another table refers to this one."""
        session.execute(f"DELETE FROM {self.server.sql}".encode(), ())

    def take_out(self, session: Session, key: RowTexts) -> dict[str, str | None] | None:
        """Delete a row and return it whole, with columns that are not replicated; None: no row."""
        columns = self.columns
        query = (
            f"DELETE FROM {self.server.sql} t USING {self._source(self.table.key)}"
            f" WHERE {self._same_key}"
            f" RETURNING {', '.join(f't.{name(column)}' for column in columns)}"
        )
        found = texts(session, query, (_json([key]),))
        return dict(zip(columns, found[0], strict=True)) if found else None

    def insert(self, session: Session, row: RowTexts) -> None:
        """Insert one row, of which columns may be absent."""
        columns = tuple(row)
        self._check_spelled(session, columns, [row])
        with self._checked(session):
            self._execute(session, f"{self._insert(columns)} {self._selected(columns)}", [row])

    def keys_in_way(
        self, session: Session, row: RowTexts, index: str, unset: Collection[str] = ()
    ) -> set[str]:
        """The keys on the wire of the rows that hold what this one wants in a unique index.

        `unset`: the columns in which it wants their default. Empty: they are not known.
        """
        unique = next((one for one in self.server.uniques if one.name == index), None)
        if unique is None:
            return set()
        same = [f"{_of('t', part)} = {_of('x', part)}" for part in unique.parts]
        if unique.condition is not None:
            same.append(_of("t", unique.condition))
        columns = self.columns
        wanted = {one: self._cast(one) for one in columns}
        wanted |= {one: self._default(session, one) for one in unset}
        cast = ", ".join(f"{value} AS {name(one)}" for one, value in wanted.items())
        source = self._source(columns)
        keys = ", ".join(f"t.{name(column)}" for column in self.table.key)
        is_own = " AND ".join(f"t.{name(one)} = x.{name(one)}" for one in self.table.key)
        query = (
            f"SELECT {keys} FROM {self.server.sql} t, (SELECT {cast} FROM {source}) x"
            f" WHERE {' AND '.join(same)} AND NOT ({is_own})"
        )
        return {self.key_image(found) for found in texts(session, query, (_json([row]),))}

    def key_image(self, key: Sequence[str | None]) -> str:
        """The wire's text of a key that was read."""
        kinds = {column: self.table.columns[column] for column in self.table.key}
        return image(kinds, dict(zip(self.table.key, key, strict=True))).text

    def _texts(self, on_wire: str) -> dict[str, str | None]:
        try:
            found: dict[str, object] = orjson.loads(on_wire)
            return {
                column: self.server.columns[column].from_wire(
                    value, self.table.columns[column], is_key=column in self.table.key
                )
                for column, value in found.items()
            }
        except (ValueError, KeyError):
            self.lacking.check(on_wire)
            wire.image_values(on_wire, self.table)  # which says what is wrong
            raise

    @contextmanager
    def _checked(self, session: Session) -> Iterator[None]:
        """Have deferrable constraints checked, which the role `replica` does not do.

        PostgreSQL checks them by internal triggers, which do not fire in it. They are checked here
        and not at the commit, which would not say which row it was.
        """
        if not self.server.is_checked_later:
            yield
            return
        session.execute("SET LOCAL session_replication_role = origin")
        yield
        session.execute("SET CONSTRAINTS ALL IMMEDIATE")
        session.execute("SET LOCAL session_replication_role = replica")

    def _insert_or_update(
        self,
        session: Session,
        columns: Sequence[str],
        rows: Sequence[RowTexts],
        unset: Collection[str],
    ) -> None:
        key = ", ".join(map(name, self.table.key))
        new = {one: f"EXCLUDED.{name(one)}" for one in columns if one not in self.table.key}
        sets = _sets(new, unset)
        does = f"UPDATE SET {sets}" if sets else "NOTHING"
        insert = f"{self._insert(columns)} {self._selected(columns)} ON CONFLICT ({key}) DO {does}"
        self._execute(session, insert, rows)

    def _update(
        self,
        session: Session,
        columns: Sequence[str],
        rows: Sequence[RowTexts],
        unset: Collection[str],
    ) -> None:
        new = {one: self._cast(one) for one in columns if one not in self.table.key}
        sets = _sets(new, unset)
        if sets:
            update = f"UPDATE {self.server.sql} t SET {sets} FROM {self._source(columns)}"
            where = self._same_key
            self._execute(session, f"{update} WHERE {where}", rows)

    def _insert_absent(
        self, session: Session, columns: Sequence[str], rows: Sequence[RowTexts]
    ) -> None:
        there = f"SELECT 1 FROM {self.server.sql} t WHERE {self._same_key}"
        insert = f"{self._insert(columns)} {self._selected(columns)} WHERE NOT EXISTS ({there})"
        self._execute(session, insert, rows)

    def _execute(self, session: Session, query: str, rows: Sequence[RowTexts]) -> None:
        session.execute(query.encode(), (_json(rows),))

    def _insert(self, columns: Iterable[str]) -> str:
        into = ", ".join(map(name, columns))
        return f"INSERT INTO {self.server.sql} ({into}) OVERRIDING SYSTEM VALUE"

    def _selected(self, columns: Sequence[str]) -> str:
        casts = ", ".join(map(self._cast, columns))
        return f"SELECT {casts} FROM {self._source(columns)}"

    def _source(self, columns: Iterable[str]) -> str:
        return f"json_to_recordset(%s) AS x({', '.join(f'{name(one)} text' for one in columns)})"

    def _cast(self, column: str) -> str:
        cast = self.server.columns[column].cast.replace("%", "%%")
        return f"CAST(x.{name(column)} AS {cast})"

    def _default(self, session: Session, column: str) -> str:
        default = (default_of(session, self.server, column) or "NULL").replace("%", "%%")
        return f"CAST(({default}) AS {self.server.columns[column].cast.replace('%', '%%')})"

    @property
    def _same_key(self) -> str:
        return " AND ".join(f"t.{name(one)} = {self._cast(one)}" for one in self.table.key)


def written_over(taken: RowTexts, row: RowTexts, unset: Collection[str]) -> dict[str, str | None]:
    """A row that was taken out as it is inserted again; an unset column is absent."""
    kept = {column: text for column, text in taken.items() if column not in unset}
    return {**kept, **row}


def writers(session: Session, tables: Iterable[Table]) -> dict[str, RowWriter]:
    """The writer of each table, by its name; ConfigError: one is not there."""
    return {table.name: _writer(table, read_table(session, table.name)) for table in tables}


def _writer(whole: Table, server: ServerTable) -> RowWriter:
    table = present_part(whole, server.columns)
    missing = whole.columns.keys() - table.columns.keys()
    return RowWriter(table, server, LackingColumns(table, frozenset(missing)))


def _sets(new: Mapping[str, str], unset: Iterable[str]) -> str:
    """What an UPDATE sets; `new`: column -> its value in SQL."""
    values = {**dict.fromkeys(sorted(unset), "DEFAULT"), **new}
    return ", ".join(f"{name(column)} = {value}" for column, value in values.items())


def _json(rows: Iterable[RowTexts]) -> str:
    return json_text([dict(row) for row in rows])


def _of(row: str, expression: str) -> str:
    """An expression over the columns of a row, which it names without their table."""
    return f"(SELECT {expression.replace('%', '%%')} FROM (SELECT {row}.*) one)"
