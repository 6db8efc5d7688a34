"""A user's table as SQLite declares it."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from connectors.sqlite import sql
from connectors.sqlite.install.system import PREFIX
from connectors.sqlite.schema.create_table import index_parts
from connectors.sqlite.schema.defaults import default_value
from connectors.sqlite.values.columns import Affinity, StoredColumn, affinity
from connectors.sqlite.values.spellings import CANONICAL_TIME, Stored, TimeForm, time_form
from connectors.sqlite.values.text import UTF_8, encoding_of
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import ColumnType, Table

BINARY = "BINARY"
"""The collation under which only equal bytes are equal."""

ROWIDS = ("rowid", "_rowid_", "oid")
"""The names of a rowid, unless a column has them."""


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A column as SQLite declares it; `default`: the text of its default."""

    name: str
    declared: str
    not_null: bool
    default: str | None
    generated: bool
    key_place: int  # place in the primary key, from 1; 0: not in it
    affinity: Affinity

    @property
    def default_value(self) -> Stored:
        """The value that the default gives; None: there is none, or it cannot be evaluated here."""
        return None if self.default is None else default_value(self.declared, self.default)

    @property
    def is_required(self) -> bool:
        """Return whether an insert without a value for this column fails."""
        has_value = self.default is not None or self.generated or self.is_rowid
        return self.not_null and not has_value

    @property
    def is_rowid(self) -> bool:
        """Return whether SQLite gives it a value by itself where it is the whole primary key."""
        return self.key_place == 1 and self.declared.upper() == Affinity.INTEGER


@dataclass(frozen=True, slots=True)
class UniqueColumn:
    """A column of a unique constraint with the collation by which it compares."""

    name: str
    collation: str


Unique = tuple[UniqueColumn, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """The columns and unique constraints of a table; a partial index counts as a whole one.

    `declared`: the unique constraints in the table's own declaration, which may say what happens
    on a conflict. `partial`: those that hold for some rows only, with the condition on these.
    `expressions`: its unique indexes on expressions.
    """

    columns: Mapping[str, DeclaredColumn]
    uniques: tuple[Unique, ...]
    declared: tuple[Unique, ...]
    partial: Mapping[Unique, str]
    expressions: tuple[str, ...]
    rowid: str | None  # the name of a rowid that no column aliases
    rowids: tuple[str, ...]  # the names by which a statement may set the rowid, aliased or not
    identity: tuple[str, ...]  # what tells rows apart that have one key of nulls, too
    has_null_keys: bool  # SQLite allows nulls in a primary key
    is_utf16: bool  # the database stores its text so

    def stored(self, table: Table) -> dict[str, StoredColumn]:
        """The configured columns as the database holds them."""
        return {
            name: StoredColumn(
                kind,
                self.columns[name].affinity,
                name in table.key,
                _time_form(self.columns[name], kind),
                self.is_utf16,
            )
            for name, kind in table.columns.items()
        }


def read(connection: sqlite3.Connection, table: Table) -> Catalog:
    """The catalogue of a configured table; ConfigError if there is no such table."""
    without_rowid, strict = _check_is_table(connection, table)
    columns = columns_of(connection, table.name, is_strict=strict)
    primary = sorted((c for c in columns.values() if c.key_place), key=lambda c: c.key_place)
    indexes = _unique_indexes(connection, table)
    found = indexes.declares
    aliased = without_rowid or (bool(primary) and not indexes.has_primary)
    if primary and not indexes.has_primary:
        found = {tuple(UniqueColumn(c.name, BINARY) for c in primary): True} | found
    used = {name.lower() for name in columns}
    nullable = [name for name in table.key if name in columns and not columns[name].not_null]
    in_primary = aliased and all(columns[name].key_place for name in nullable)
    rowids = () if without_rowid else tuple(name for name in ROWIDS if name not in used)
    rowid = None if aliased else next(iter(rowids), None)
    return Catalog(
        columns,
        tuple(found),
        tuple(unique for unique, is_declared in found.items() if is_declared),
        indexes.partial,
        indexes.expressions,
        rowid,
        rowids,
        (rowid,) if rowid else tuple(column.name for column in primary) or table.key,
        bool(nullable) and not in_primary,
        encoding_of(connection) != UTF_8,
    )


def user_tables(connection: sqlite3.Connection) -> list[str]:
    """The ordinary tables of the database that are not the agent's, by name."""
    rows = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND substr(name, 1, ?) <> ? ORDER BY name",
        (len(PREFIX), PREFIX),
    )
    return [name for (name,) in rows]


def create_statement(connection: sqlite3.Connection, table: str) -> str:
    """The CREATE statement of a table; "" if there is none."""
    query = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND lower(name) = lower(?)"
    (create,) = connection.execute(query, (table,)).fetchone() or ("",)
    return str(create)


def _check_is_table(connection: sqlite3.Connection, table: Table) -> tuple[bool, bool]:
    """Whether the table has no rowid, and whether it is strict."""
    kind = connection.execute(
        "SELECT type, sql FROM sqlite_schema WHERE lower(name) = lower(?)"
        " AND type IN ('table', 'view')",
        (table.name,),
    ).fetchone()
    if kind is None:
        raise ConfigError(f"table {table.name} is not in the database: create it there first")
    if kind[0] != "table" or kind[1].upper().startswith("CREATE VIRTUAL"):
        raise ConfigError(f"{table.name} is not an ordinary table: only tables can be replicated")
    rows = connection.execute(f"PRAGMA table_list({sql.name(table.name)})").fetchall()
    return next(((bool(row[4]), bool(row[5])) for row in rows if row[0] == "main"), (False, False))


def columns_of(
    connection: sqlite3.Connection, table: str, *, is_strict: bool
) -> dict[str, DeclaredColumn]:
    """The columns of a table by their names."""
    rows = connection.execute(f"PRAGMA table_xinfo({sql.name(table)})")
    return {
        name: DeclaredColumn(
            name,
            declared,
            bool(not_null),
            default,
            hidden > 0,
            key_place,
            Affinity.BLOB if is_strict and declared.upper() == "ANY" else affinity(declared),
        )
        for _, name, declared, not_null, default, key_place, hidden in rows
    }


@dataclass(frozen=True, slots=True)
class _UniqueIndexes:
    """The unique indexes of a table, with whether it declares each; see Catalog.

    `has_primary`: one is that of the primary key.
    """

    declares: dict[Unique, bool]
    partial: Mapping[Unique, str]
    expressions: tuple[str, ...]
    has_primary: bool


def _unique_indexes(connection: sqlite3.Connection, table: Table) -> _UniqueIndexes:
    indexes = connection.execute(f"PRAGMA index_list({sql.name(table.name)})").fetchall()
    uniques, expressions = dict[Unique, bool](), list[str]()
    conditions = dict[Unique, list[str | None]]()
    for _, index, unique, origin, is_partial in indexes:
        if not unique:
            continue
        rows = connection.execute(f"PRAGMA index_xinfo({sql.name(index)})").fetchall()
        parts = [(name, collation) for _, _, name, _, collation, is_key in rows if is_key]
        if any(name is None for name, _ in parts):
            expressions.append(index)
        else:
            columns = tuple(UniqueColumn(name, collation) for name, collation in parts)
            uniques[columns] = uniques.get(columns, False) or origin != "c"
            condition = _condition(connection, index) if is_partial else None
            conditions.setdefault(columns, []).append(condition)
    partial = {
        unique: " OR ".join(f"({one})" for one in found)
        for unique, found in conditions.items()
        if None not in found
    }
    has_primary = any(row[3] == "pk" for row in indexes)
    return _UniqueIndexes(uniques, partial, tuple(expressions), has_primary)


def _condition(connection: sqlite3.Connection, index: str) -> str | None:
    query = "SELECT sql FROM sqlite_schema WHERE type = 'index' AND name = ?"
    return index_parts(connection.execute(query, (index,)).fetchone()[0])[1]


def _time_form(column: DeclaredColumn, kind: ColumnType) -> TimeForm:
    """The form of the column's default, if that is a time."""
    if kind is not ColumnType.TIMESTAMP or column.default is None:
        return CANONICAL_TIME
    found = column.default_value
    return (time_form(found) if isinstance(found, str) else None) or CANONICAL_TIME
