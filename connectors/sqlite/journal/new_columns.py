"""Columns that a captured table got or lost: whether others have to be told what is in them.

A column that is new has its default in every row, which the other databases give it too. One that
was captured, was gone, and is back may have been written meanwhile.
"""
# ruff: noqa: S608 every name is quoted

import sqlite3
from collections.abc import Iterable, Mapping

from connectors.sqlite import sql
from connectors.sqlite.install.system import PREFIX
from connectors.sqlite.schema.catalog import Catalog
from connectors.sqlite.schema.defaults import default_value
from connectors.sqlite.values.columns import captured_name
from streaming.core.model.table import Table


def have_values(connection: sqlite3.Connection, table: Table, catalog: Catalog) -> bool:
    """Return whether a column that is not captured so far has values that nobody else has."""
    new = [name for name in table.columns if _is_captured(connection, table, name) is False]
    back = _gone(connection, table.name)
    return any(
        name in back or _differs_from_default(connection, table, catalog, name) for name in new
    )


def note_gone(
    connection: sqlite3.Connection, tables: Iterable[Table], known: Mapping[str, Table]
) -> None:
    """Note which captured columns are gone, and no more which are back; in a transaction.

    Before the triggers are made again. `known`: table -> what of it is there.
    """
    for table in tables:
        there = known[table.name].columns
        gone = [n for n in table.columns if n not in there and _is_captured(connection, table, n)]
        connection.executemany(
            "INSERT OR IGNORE INTO _slackwater_gone VALUES (?, ?)",
            [(table.name, name) for name in gone],
        )
        connection.executemany(
            'DELETE FROM _slackwater_gone WHERE "table" = ? AND "column" = ?',
            [(table.name, name) for name in there],
        )


def _is_captured(connection: sqlite3.Connection, table: Table, name: str) -> bool | None:
    """Return whether the triggers capture a column; None: they are not known to capture any."""
    query = "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND lower(name) = lower(?)"
    trigger = connection.execute(query, (f"{PREFIX}after_insert_{table.name}",)).fetchone()
    (text,) = trigger or ("",)
    if not all(captured_name(key) in text for key in table.key):
        return None
    return captured_name(name) in text


def _gone(connection: sqlite3.Connection, table: str) -> set[str]:
    there = "SELECT 1 FROM sqlite_schema WHERE name = '_slackwater_gone'"
    if not connection.execute(there).fetchone():
        return set()
    query = 'SELECT "column" FROM _slackwater_gone WHERE "table" = ?'
    return {str(name) for (name,) in connection.execute(query, (table,))}


def _differs_from_default(
    connection: sqlite3.Connection, table: Table, catalog: Catalog, name: str
) -> bool:
    column = catalog.columns[name]
    default = default_value(column.declared, column.default) if column.default else None
    query = f"SELECT 1 FROM {sql.name(table.name)} WHERE {sql.name(name)} IS NOT ? LIMIT 1"
    return connection.execute(query, (default,)).fetchone() is not None
