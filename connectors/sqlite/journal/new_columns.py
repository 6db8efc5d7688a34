"""Columns that a captured table got or lost: whether others have to be told what is in them.

A column that is new has its default in every row, which the other databases give it too: the rows
are told that have another value. One that was captured, was gone, and is back may have been written
meanwhile, to its default too.
"""
# ruff: noqa: S608 every name is quoted

import sqlite3
from collections.abc import Collection, Iterable, Mapping

from connectors.sqlite import sql
from connectors.sqlite.install.system import PREFIX
from connectors.sqlite.schema.catalog import BINARY, DeclaredColumn, read
from connectors.sqlite.values.columns import captured_name
from streaming.core.model.table import Table


def new_columns(connection: sqlite3.Connection, table: Table) -> list[str]:
    """The columns of a captured table that are not captured so far."""
    return [name for name in table.columns if _is_captured(connection, table, name) is False]


def is_back(connection: sqlite3.Connection, table: Table, columns: Collection[str]) -> bool:
    """Return whether one of these columns was captured before, and gone."""
    return not _gone(connection, table.name).isdisjoint(columns)


def have_values(connection: sqlite3.Connection, table: Table, columns: Collection[str]) -> bool:
    """Return whether a row has a value in these columns that nobody else has."""
    query = f"SELECT 1 FROM {sql.name(table.name)} x WHERE {differing(connection, table, columns)}"
    return connection.execute(f"{query} LIMIT 1").fetchone() is not None


def differing(connection: sqlite3.Connection, table: Table, columns: Collection[str]) -> str:
    """The condition that a row `x` has another value than the default in one of these columns.

    A column that the table does not have any more says nothing.
    """
    found = [_differs(connection, one) for one in _declared(connection, table, columns)]
    return " OR ".join(found) or "0"


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


def _declared(
    connection: sqlite3.Connection, table: Table, columns: Collection[str]
) -> list[DeclaredColumn]:
    declared = read(connection, table).columns
    return [declared[name] for name in columns if name in declared]


def _differs(connection: sqlite3.Connection, column: DeclaredColumn) -> str:
    value = (column.default_value,)
    (default,) = connection.execute(f"SELECT {sql.literal('?1')}", value).fetchone()
    return f"x.{sql.name(column.name)} COLLATE {BINARY} IS NOT {default}"
