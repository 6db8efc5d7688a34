"""Writes rows into a new SQLite file, as an agent would have applied them."""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

from connectors.agent.found import Rows
from connectors.sqlite import sql
from connectors.sqlite.apply.rows import writers
from streaming.core.model.change import Op
from streaming.core.model.errors import StateError
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Item, ItemType

DECLARED = {
    ColumnType.BOOL: "INTEGER",
    ColumnType.INT32: "INTEGER",
    ColumnType.INT64: "INTEGER",
    ColumnType.FLOAT64: "REAL",
    ColumnType.DECIMAL: "TEXT",
    ColumnType.TEXT: "TEXT",
    ColumnType.BYTES: "BLOB",
    ColumnType.TIMESTAMP: "TEXT",
}
"""The declared type of a column, which keeps every value of its type exactly."""


def export(file: Path, tables: Iterable[Table], rows: Mapping[str, Rows]) -> int:
    """Make a database of these tables, `rows` by table in them; how many rows it has.

    StateError if the file is there already, or cannot be written; then it is not there.
    """
    if file.exists():
        raise StateError(f"{file} is there already: name a new file")
    part = file.with_name(f"{file.name}.part")
    try:
        part.unlink(missing_ok=True)
        with closing(sqlite3.connect(part, isolation_level=None)) as connection:
            count = _fill(connection, list(tables), rows)
        part.rename(file)
    except (sqlite3.Error, OSError) as error:
        raise StateError(f"{file} cannot be written: {error}") from error
    return count


def _fill(connection: sqlite3.Connection, tables: list[Table], rows: Mapping[str, Rows]) -> int:
    connection.execute("BEGIN")
    for table in tables:
        connection.execute(_create(table))
    count = 0
    for name, writer in writers(connection, tables).items():
        for key, image in rows[name]:
            writer.write(connection, Item(ItemType.REFRESH, name, key, Op.INSERT, image, None, 0))
            count += 1
    connection.execute("COMMIT")
    return count


def _create(table: Table) -> str:
    columns = [
        f"{sql.name(name)} {DECLARED[kind]}{' NOT NULL' if name in table.key else ''}"
        for name, kind in table.columns.items()
    ]
    key = ", ".join(map(sql.name, table.key))
    return f"CREATE TABLE {sql.name(table.name)} ({', '.join(columns)}, PRIMARY KEY ({key}))"
