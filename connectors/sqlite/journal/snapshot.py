"""The rows that a database had before it was a replica: published in its topic, in key ranges.

A range is read, numbered and journalled in one local transaction, so a row is as it stands
between two captured changes, and a killed agent goes on behind the last range.
"""
# ruff: noqa: S608 every name is quoted, every expression is our own

import sqlite3
from collections.abc import Collection, Iterable, Mapping

from connectors.sqlite import sql
from connectors.sqlite.apply.rows import RowWriter
from connectors.sqlite.journal.new_columns import differing
from connectors.sqlite.schema.catalog import BINARY
from connectors.sqlite.transaction import atomic
from connectors.sqlite.values.columns import StoredColumn, image_sql
from streaming.core.model.table import Table

BEGIN, END = "begin", "end"


def begin(
    connection: sqlite3.Connection,
    tables: Iterable[str],
    own_values: Mapping[str, Collection[str]],
) -> None:
    """Note that the rows of these tables are to be published, in one snapshot; in a transaction.

    `own_values`: table -> columns; of such a table those rows that differ from their defaults, if
    it is not published whole already.
    """
    row = connection.execute("SELECT id FROM _slackwater_snapshot LIMIT 1").fetchone()
    (id_,) = row or connection.execute("SELECT lower(hex(randomblob(8)))").fetchone()
    connection.executemany(
        'INSERT OR REPLACE INTO _slackwater_snapshot ("table", id) VALUES (?, ?)',
        [(table, id_) for table in tables],
    )
    for table, columns in own_values.items():
        connection.execute(
            'INSERT INTO _slackwater_snapshot ("table", id, columns) VALUES (?1, ?2, ?3)'
            ' ON CONFLICT ("table") DO UPDATE SET after = NULL, rows = 0, is_complete = 0,'
            " columns = columns || char(10) || ?3",
            (table, id_, "\n".join(columns)),
        )


def named(connection: sqlite3.Connection) -> str | None:
    """The id of the snapshot whose end is not known to be in the topic; None: there is none."""
    row = connection.execute(
        "SELECT id FROM _slackwater_snapshot"
        " UNION ALL SELECT snapshot FROM _slackwater_journal WHERE kind = 'snapshot' AND op = ?"
        " AND id > (SELECT published FROM _slackwater_position) LIMIT 1",
        (END,),
    ).fetchone()
    return None if row is None else str(row[0])


def journal_snapshot(
    connection: sqlite3.Connection, writers: Mapping[str, RowWriter], rows_max: int
) -> bool:
    """Journal the next rows of the snapshot, in one transaction; False: there is none."""
    if not connection.execute("SELECT 1 FROM _slackwater_snapshot LIMIT 1").fetchone():
        return False
    with atomic(connection):
        _tell(connection, writers, rows_max)
    return True


def _tell(connection: sqlite3.Connection, writers: Mapping[str, RowWriter], rows_max: int) -> None:
    _forget_others(connection, writers)
    row = connection.execute(
        'SELECT "table", id, after, columns FROM _slackwater_snapshot WHERE NOT is_complete LIMIT 1'
    ).fetchone()
    if row is None:
        _end(connection)
        return
    name, id_, after, columns = row
    if after is None:
        _journal(connection, BEGIN, id_, name)
    writer = writers[name]
    which = _where(writer.table, after)
    if columns is not None:
        own = differing(connection, writer.table, columns.split("\n"))
        which += f" AND ({own})"
    count, last = _next_range(connection, writer.table, which, after, rows_max)
    if count:
        _capture(connection, writer.table, writer.columns, which, last)
    connection.execute(
        "UPDATE _slackwater_snapshot SET after = ?, rows = rows + ?, is_complete = ?"
        ' WHERE "table" = ?',
        (last, count, count < rows_max, name),
    )


def _forget_others(connection: sqlite3.Connection, tables: Collection[str]) -> None:
    """Leave out the tables that are not configured any more."""
    for (name,) in connection.execute('SELECT "table" FROM _slackwater_snapshot').fetchall():
        if name not in tables:
            connection.execute(
                'UPDATE _slackwater_snapshot SET is_complete = 1 WHERE "table" = ?', (name,)
            )


def _end(connection: sqlite3.Connection) -> None:
    id_, count = connection.execute(
        "SELECT max(id), sum(rows) FROM _slackwater_snapshot"
    ).fetchone()
    _journal(connection, END, id_, None, count)
    connection.execute("DELETE FROM _slackwater_snapshot")


def _journal(
    connection: sqlite3.Connection,
    phase: str,
    id_: str,
    table: str | None,
    count: int | None = None,
) -> None:
    connection.execute(
        'INSERT INTO _slackwater_journal (at, kind, op, snapshot, "table", rows)'
        f" VALUES ({sql.NOW_MS}, 'snapshot', ?, ?, ?, ?)",
        (phase, id_, table, count),
    )


# -- ranges ---------------------------------------------------------------------------------------


def _next_range(
    connection: sqlite3.Connection, table: Table, which: str, after: str | None, rows_max: int
) -> tuple[int, str | None]:
    """How many rows the next range has, and its last key as SQL literals."""
    key = " || ', ' || ".join(sql.literal(f"x.{sql.name(name)}") for name in table.key)
    keys = connection.execute(
        f"SELECT {key} FROM {sql.name(table.name)} x WHERE {which} ORDER BY {_key(table)} LIMIT ?",
        (rows_max,),
    ).fetchall()
    return len(keys), keys[-1][0] if keys else after


def _capture(
    connection: sqlite3.Connection,
    table: Table,
    columns: Mapping[str, StoredColumn],
    which: str,
    last: str | None,
) -> None:
    key = image_sql({name: columns[name] for name in table.key}, "x")
    connection.execute(
        'INSERT INTO _slackwater_capture (op, "table", key, after)'
        f" SELECT 'snapshot', {sql.string(table.name)}, {key}, {image_sql(columns, 'x')}"
        f" FROM {sql.name(table.name)} x WHERE {which}"
        f" AND ({_key(table)}) <= ({last}) ORDER BY {_key(table)}"
    )


def _where(table: Table, after: str | None) -> str:
    """The condition that a row is behind a key, which is in SQL literals; no key has a null."""
    found = [f"x.{sql.name(name)} IS NOT NULL" for name in table.key]
    if after is not None:
        found.append(f"({_key(table)}) > ({after})")
    return " AND ".join(found)


def _key(table: Table) -> str:
    return ", ".join(f"x.{sql.name(name)} COLLATE {BINARY}" for name in table.key)
