"""A user's table as SQLite declares it, and whether it can be replicated as configured."""

import sqlite3
from dataclasses import dataclass

from connectors.sqlite import sql
from connectors.sqlite.columns import AFFINITIES, STORED_AS, Affinity, affinity
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import Table

BINARY = "BINARY"
"""The collation under which only equal bytes are equal."""


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A column as SQLite declares it."""

    name: str
    declared: str
    required: bool  # NOT NULL without a default
    generated: bool
    key_place: int  # place in the primary key, from 1; 0: not in it


@dataclass(frozen=True, slots=True)
class UniqueColumn:
    """A column of a unique constraint with the collation by which it compares."""

    name: str
    collation: str


Unique = tuple[UniqueColumn, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """The columns and unique constraints of a table; a partial index counts as a whole one."""

    columns: tuple[DeclaredColumn, ...]
    uniques: tuple[Unique, ...]
    has_plain_rowid: bool  # a rowid that no column aliases


def read(connection: sqlite3.Connection, table: Table) -> Catalog:
    """The catalogue of a configured table; ConfigError when it cannot be replicated."""
    columns = _columns(connection, table)
    primary = sorted((c for c in columns if c.key_place), key=lambda c: c.key_place)
    without_rowid = _is_without_rowid(connection, table)
    uniques, has_primary_index = _uniques(connection, table)
    if primary and not has_primary_index:
        uniques = (tuple(UniqueColumn(c.name, BINARY) for c in primary), *uniques)
    aliased = without_rowid or (bool(primary) and not has_primary_index)
    shadowed = any(c.name.lower() == "rowid" for c in columns)
    catalog = Catalog(columns, uniques, not aliased and not shadowed)
    _check(catalog, table)
    return catalog


def _columns(connection: sqlite3.Connection, table: Table) -> tuple[DeclaredColumn, ...]:
    kind = connection.execute(
        "SELECT type, sql FROM sqlite_schema WHERE lower(name) = lower(?)", (table.name,)
    ).fetchone()
    if kind is None:
        raise ConfigError(f"table {table.name} is not in the database: create it there first")
    if kind[0] != "table" or kind[1].upper().startswith("CREATE VIRTUAL"):
        raise ConfigError(f"{table.name} is not an ordinary table: only tables can be replicated")
    rows = connection.execute(f"PRAGMA table_xinfo({sql.name(table.name)})")
    return tuple(
        DeclaredColumn(name, declared, bool(not_null) and default is None, hidden > 0, key_place)
        for _, name, declared, not_null, default, key_place, hidden in rows
    )


def _is_without_rowid(connection: sqlite3.Connection, table: Table) -> bool:
    rows = connection.execute("PRAGMA table_list")
    return any(row[1].lower() == table.name.lower() and row[4] for row in rows)


def _uniques(connection: sqlite3.Connection, table: Table) -> tuple[tuple[Unique, ...], bool]:
    """The unique indexes, and whether one of them is that of the primary key."""
    indexes = connection.execute(f"PRAGMA index_list({sql.name(table.name)})").fetchall()
    uniques = list[Unique]()
    for _, index, unique, _, _ in indexes:
        if not unique:
            continue
        rows = connection.execute(f"PRAGMA index_xinfo({sql.name(index)})").fetchall()
        parts = [(name, collation) for _, _, name, _, collation, is_key in rows if is_key]
        if any(name is None for name, _ in parts):
            raise ConfigError(
                f"table {table.name}: the unique index {index} is on an expression; REPLACE could"
                " delete rows by it unnoticed: make it a plain index, or one on a generated column"
            )
        uniques.append(tuple(UniqueColumn(name, collation) for name, collation in parts))
    return tuple(uniques), any(origin == "pk" for _, _, _, origin, _ in indexes)


def _check(catalog: Catalog, table: Table) -> None:
    for complaint in _complaints(catalog, table):
        raise ConfigError(f"table {table.name}: {complaint}")


def _complaints(catalog: Catalog, table: Table) -> list[str]:
    """Why the table cannot be replicated as configured; empty if it can."""
    found = {column.name: column for column in catalog.columns}
    missing = [name for name in table.columns if name not in found]
    if missing:
        return [f"column {missing[0]} is not in the database: add it there first"]
    return [
        *_type_complaints(found, table),
        *(
            f"column {column.name} is generated: leave it out of the configuration"
            for column in catalog.columns
            if column.generated and column.name in table.columns
        ),
        *(
            f"column {column.name} is NOT NULL without a default, but not replicated: no row of"
            " another replica could be stored; give it a default or add it to the columns"
            for column in catalog.columns
            if _is_needed(column) and column.name not in table.columns
        ),
        *_key_complaints(catalog, table),
    ]


def _is_needed(column: DeclaredColumn) -> bool:
    """Return whether an insert without a value for this column fails."""
    is_rowid = column.key_place == 1 and column.declared.upper() == Affinity.INTEGER
    return column.required and not column.generated and not is_rowid


def _type_complaints(found: dict[str, DeclaredColumn], table: Table) -> list[str]:
    return [
        f"column {name} is declared as {found[name].declared or 'nothing'}, which does not keep"
        f" every {kind} ({STORED_AS[kind]}): declare it as"
        f" {' or '.join(sorted(AFFINITIES[kind] - {Affinity.BLOB} or AFFINITIES[kind]))}"
        for name, kind in table.columns.items()
        if affinity(found[name].declared) not in AFFINITIES[kind]
    ]


def _key_complaints(catalog: Catalog, table: Table) -> list[str]:
    key = {UniqueColumn(name, BINARY) for name in table.key}
    if any(set(unique) == key for unique in catalog.uniques):
        return []
    columns = ", ".join(table.key)
    complaint = (
        f"its key ({columns}) is neither primary key nor unique in the database, or does not"
        f" compare by {BINARY}: declare it so"
    )
    return [complaint]
