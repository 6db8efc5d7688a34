"""Writes that stay in this database: a client opens them within a transaction, and closes them.

What is written in between is not captured, as what the agent applies, but counted by table. The
guard is a row that refers to none, by a foreign key that is checked at the commit: with it no
transaction can be committed, so writes stay nowhere open by accident. SQLite checks foreign keys
only where they are on, so the guard is opened only there; within a transaction nobody turns them
off.
"""
# ruff: noqa: S608 every expression is our own

import sqlite3
from collections.abc import Iterable

from connectors.sqlite import sql
from streaming.core.records.local_writes import TableWrites

TABLES = {
    "_slackwater_local_guard": """CREATE TABLE _slackwater_local_guard (
  id INTEGER PRIMARY KEY CHECK (id = 1),  -- there while writes stay here
  -- refers to no row, so no transaction is committed meanwhile
  closed INTEGER NOT NULL REFERENCES _slackwater_local_guard (id) DEFERRABLE INITIALLY DEFERRED
)""",
    "_slackwater_local_writes": """CREATE TABLE _slackwater_local_writes (
  "table" TEXT PRIMARY KEY,
  rows INTEGER NOT NULL DEFAULT 0,  -- so many were written that stay here
  last_ms INTEGER NOT NULL DEFAULT 0  -- since 1970
)""",
}

LOCAL = 2
"""The value of `applying` while what a client writes stays here."""

_NO_FOREIGN_KEYS = (
    "writes that stay in this database need PRAGMA foreign_keys = ON before BEGIN: it keeps COMMIT"
    " from leaving them open"
)
_NOT_BEGUN = (
    "no begin came before this end, so what was written goes to all replicas: ROLLBACK, and begin"
    " first"
)
_IS_OPEN = "EXISTS (SELECT 1 FROM _slackwater_local_guard)"

VIEW = {
    "_slackwater_local": "CREATE VIEW _slackwater_local (op) AS SELECT NULL WHERE 0",
    "_slackwater_local_begin": f"""CREATE TRIGGER _slackwater_local_begin
INSTEAD OF INSERT ON _slackwater_local WHEN NEW.op = 'begin'
BEGIN
  SELECT RAISE(ABORT, {sql.string(_NO_FOREIGN_KEYS)})
  WHERE NOT EXISTS (SELECT 1 FROM pragma_foreign_keys WHERE foreign_keys);
  SELECT RAISE(ABORT, 'writes stay in this database already') WHERE {_IS_OPEN};
  INSERT INTO _slackwater_local_guard (id, closed) VALUES (1, 2);
  UPDATE _slackwater_origin SET applying = {LOCAL};
END""",
    "_slackwater_local_end": f"""CREATE TRIGGER _slackwater_local_end
INSTEAD OF INSERT ON _slackwater_local WHEN NEW.op = 'end'
BEGIN
  SELECT RAISE(ABORT, {sql.string(_NOT_BEGUN)}) WHERE NOT {_IS_OPEN};
  DELETE FROM _slackwater_local_guard;
  UPDATE _slackwater_origin SET applying = 0, statement = statement + 1, open_writes = 0;
END""",
    "_slackwater_local_other": """CREATE TRIGGER _slackwater_local_other
INSTEAD OF INSERT ON _slackwater_local WHEN NEW.op IS NOT 'begin' AND NEW.op IS NOT 'end'
BEGIN
  SELECT RAISE(ABORT, 'the op is begin or end');
END""",
}
"""A view of its own: SQLite compiles its triggers with the statements that open and close alone."""

IS_LOCAL = f"(SELECT applying = {LOCAL} FROM _slackwater_origin)"
"""A condition: what a client writes stays here."""


def count_sql(table: str) -> str:
    """The statement of a trigger that counts a row of this table."""
    return (
        f"UPDATE _slackwater_local_writes SET rows = rows + 1, last_ms = {sql.NOW_MS}"
        f' WHERE "table" = {sql.string(table)}'
    )


def add_tables(connection: sqlite3.Connection, tables: Iterable[str]) -> None:
    """Have a row for each of these tables, from which its rows are counted; in a transaction."""
    connection.executemany(
        'INSERT OR IGNORE INTO _slackwater_local_writes ("table") VALUES (?)',
        [(table,) for table in tables],
    )


def local_writes(connection: sqlite3.Connection) -> dict[str, TableWrites]:
    """Table -> its writes that stay here, of those that have some."""
    rows = connection.execute(
        'SELECT "table", rows, last_ms FROM _slackwater_local_writes WHERE rows ORDER BY 1'
    )
    return {table: TableWrites(count, last_ms) for table, count, last_ms in rows}
