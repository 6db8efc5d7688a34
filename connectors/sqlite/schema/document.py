"""The schema of a SQLite database as a document (streaming/core/schema/document.py)."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from connectors.sqlite import sql
from connectors.sqlite.connections import reading
from connectors.sqlite.install.system import PREFIX
from connectors.sqlite.schema.catalog import BINARY, columns_of
from connectors.sqlite.schema.create_table import (
    ColumnText,
    check_conditions,
    column_texts,
    index_parts,
    trigger_event,
)
from connectors.sqlite.schema.references import references_of
from connectors.sqlite.schema.user_triggers import GUARD
from connectors.sqlite.values.columns import AFFINITIES, Affinity
from connectors.sqlite.values.text import stored_bytes
from streaming.core.model.table import ColumnType, Table
from streaming.core.schema.difference import comparable
from streaming.core.schema.document import (
    DatabaseSchema,
    IdSource,
    SchemaColumn,
    SchemaReference,
    SchemaTable,
    SchemaTrigger,
    SchemaUnique,
)

STORAGES = {
    one.value: tuple(kind for kind in ColumnType if one in AFFINITIES[kind]) for one in Affinity
}
_NO_TEXT = ColumnText(None, None, is_autoincrement=False)


def schema_in(database: str | Path, replica: str, tables: Iterable[Table]) -> DatabaseSchema:
    """The schema of a database file, which is only read; StateError if there is none."""
    with reading(database) as connection:
        return database_schema(connection, replica, [one.name for one in tables])


def database_schema(
    connection: sqlite3.Connection, replica: str, tables: Sequence[str]
) -> DatabaseSchema:
    """What the database declares of these tables; those that it lacks are not in it."""
    (encoding,) = connection.execute("PRAGMA encoding").fetchone()
    found = [_table(connection, *row) for name in tables for row in _declared(connection, name)]
    used = {column.storage for table in found for column in table.columns}
    return DatabaseSchema(
        replica,
        f"SQLite {sqlite3.sqlite_version}",
        encoding,
        tuple(found),
        {name: kinds for name, kinds in STORAGES.items() if name in used},
    )


def _declared(connection: sqlite3.Connection, name: str) -> list[tuple[str, str]]:
    """The table's name as it is declared, and its CREATE statement; empty: there is none."""
    query = (
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND lower(name) = lower(?)"
        " AND sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    return connection.execute(query, (name,)).fetchall()


def _table(connection: sqlite3.Connection, name: str, create: str) -> SchemaTable:
    listed = connection.execute(f"PRAGMA table_list({sql.name(name)})").fetchall()
    without_rowid, strict = next((bool(r[4]), bool(r[5])) for r in listed if r[0] == "main")
    options = ["STRICT"] if strict else []
    return SchemaTable(
        name,
        tuple(_columns(connection, name, create, has_rowid=not without_rowid, is_strict=strict)),
        tuple(_uniques(connection, name)),
        tuple(check_conditions(create)),
        tuple(
            SchemaReference(one.columns, one.parent, one.there, one.on_delete, one.on_update)
            for one in reversed([*references_of(connection, name)])  # as they are declared
        ),
        tuple(_triggers(connection, name)),
        tuple([*options, "WITHOUT ROWID"] if without_rowid else options),
    )


def _columns(
    connection: sqlite3.Connection, name: str, create: str, *, has_rowid: bool, is_strict: bool
) -> Iterator[SchemaColumn]:
    texts = column_texts(create)
    columns = columns_of(connection, name, is_strict=is_strict)
    keys = [column for column in columns.values() if column.key_place]
    for column in columns.values():
        text = texts.get(column.name.lower(), _NO_TEXT)
        is_rowid = has_rowid and keys == [column] and column.declared.upper() == "INTEGER"
        collation = text.collation and text.collation.upper()
        id_source = IdSource.LARGEST_EVER if text.is_autoincrement else IdSource.LARGEST
        yield SchemaColumn(
            column.name,
            column.declared,
            column.affinity.value,
            column.not_null,
            column.default,
            text.generated if column.generated else None,
            None if collation == BINARY else collation,
            id_source if is_rowid and not _has_key_index(connection, name) else None,
        )


def _has_key_index(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether the primary key has an index of its own, and so is not the rowid."""
    listed = connection.execute(f"PRAGMA index_list({sql.name(name)})").fetchall()
    return any(row[3] == "pk" for row in listed)


def _uniques(connection: sqlite3.Connection, name: str) -> Iterator[SchemaUnique]:
    if not _has_key_index(connection, name):
        rows = connection.execute(f"PRAGMA table_info({sql.name(name)})").fetchall()
        keys = tuple(row[1] for row in sorted(rows, key=lambda row: row[5]) if row[5])
        if keys:
            yield SchemaUnique(keys, ("",) * len(keys))
    listed = connection.execute(f"PRAGMA index_list({sql.name(name)})").fetchall()
    for _, index, unique, _, _ in sorted(listed, key=lambda row: (row[3] != "pk", row[0])):
        if unique:
            yield _unique(connection, index)


def _unique(connection: sqlite3.Connection, index: str) -> SchemaUnique:
    found = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (index,)).fetchone()
    expressions, where = index_parts(found[0]) if found and found[0] else ([], None)
    rows = connection.execute(f"PRAGMA index_xinfo({sql.name(index)})").fetchall()
    parts = [row for row in rows if row[5]]
    return SchemaUnique(
        tuple(str(expressions[row[0]] if row[2] is None else row[2]) for row in parts),
        tuple("" if row[4].upper() == BINARY else row[4].upper() for row in parts),
        where,
    )


def _triggers(connection: sqlite3.Connection, name: str) -> Iterator[SchemaTrigger]:
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = lower(?)"
        " AND substr(name, 1, ?) <> ? ORDER BY name",
        (name, len(PREFIX), PREFIX),
    )
    for trigger, text in rows.fetchall():
        yield SchemaTrigger(
            trigger,
            trigger_event(text),
            sha256(stored_bytes(comparable(text))).hexdigest()[:16],
            comparable(GUARD) not in comparable(text),
        )
