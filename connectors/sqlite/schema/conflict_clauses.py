"""Tables that declare what happens on a conflict: ON CONFLICT REPLACE, IGNORE, FAIL or ROLLBACK.

What the agent applies must never delete another row in silence, nor be ignored. A conflict clause
of its own statement would prevent that, and would override those in the user's triggers, which
then fail. So triggers of the agent's connection alone refuse the row before its table decides.
"""
# ruff: noqa: S608 every name is quoted

import sqlite3
from collections.abc import Iterator
from itertools import pairwise

from connectors.sqlite import sql
from connectors.sqlite.install.system import PREFIX
from connectors.sqlite.schema.catalog import BINARY, Catalog, create_statement
from streaming.core.model.table import Table

UNIQUE = "UNIQUE constraint failed"
NOT_NULL = "NOT NULL constraint failed"
"""How SQLite begins its own messages, and the agent's triggers theirs."""


def keep_to_abort(connection: sqlite3.Connection, table: Table, catalog: Catalog) -> None:
    """Let this connection's applied rows fail where they break a constraint with such a clause."""
    words = sql.words(create_statement(connection, table.name))
    has_clause = ("on", "conflict") in pairwise(words)
    for event in ("insert", "update") if has_clause else ():
        name = sql.name(f"{PREFIX}abort_{event}_{table.name}")
        statements = "".join(f" {one};" for one in _refusals(table, catalog, event))
        connection.execute(
            f"CREATE TEMP TRIGGER {name} BEFORE {event} ON main.{sql.name(table.name)}"
            f" WHEN (SELECT applying FROM main._slackwater_origin) BEGIN{statements} END"
        )


def leave_to_clauses(connection: sqlite3.Connection) -> None:
    """Drop these triggers: those of another schema would keep every statement from compiling."""
    names = connection.execute(
        "SELECT name FROM sqlite_temp_schema WHERE type = 'trigger' AND substr(name, 1, ?) = ?",
        (len(PREFIX), PREFIX),
    ).fetchall()
    for (name,) in names:
        connection.execute(f"DROP TRIGGER temp.{sql.name(name)}")


def _refusals(table: Table, catalog: Catalog, event: str) -> Iterator[str]:
    """A statement for each constraint that ends the agent's one, if the new row breaks it."""
    yield "SELECT 1"  # a body must not be empty
    there = ""
    if event == "update":
        same = (f"x.{n} = OLD.{n} COLLATE {BINARY}" for n in map(sql.name, table.key))
        there = f" AND NOT ({' AND '.join(same)})"
    for unique in catalog.declared:
        is_sent = all(part.name in table.columns for part in unique)
        if not is_sent and all(catalog.columns[part.name].is_rowid for part in unique):
            continue  # SQLite chooses a free one
        equal = " AND ".join(
            f"x.{sql.name(part.name)} = NEW.{sql.name(part.name)}"
            f" COLLATE {sql.name(part.collation)}"
            for part in unique
        )
        other = f"EXISTS (SELECT 1 FROM main.{sql.name(table.name)} x WHERE {equal}{there})"
        yield _refusal(UNIQUE, table, [part.name for part in unique], other)
    for column in catalog.columns.values():
        if column.not_null:
            yield _refusal(NOT_NULL, table, [column.name], f"NEW.{sql.name(column.name)} IS NULL")


def _refusal(what: str, table: Table, columns: list[str], condition: str) -> str:
    named = ", ".join(f"{table.name}.{name}" for name in columns)
    return f"SELECT RAISE(ABORT, {sql.string(f'{what}: {named}')}) WHERE {condition}"
