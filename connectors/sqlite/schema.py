"""Makes a SQLite database a replica: the agent's tables, and triggers on the user's tables."""

import logging
import sqlite3
from collections.abc import Iterable, Mapping

from connectors.sqlite import sql, user_triggers
from connectors.sqlite.capture import triggers
from connectors.sqlite.catalog import read
from connectors.sqlite.columns import scales
from connectors.sqlite.system import ADDED, CAPTURE, FORMAT, INDEXES, PREFIX, TABLES
from streaming.core.model.errors import ConfigError, StateError
from streaming.core.model.record import RECORD_BYTES
from streaming.core.model.table import Table

log = logging.getLogger(__name__)


def install(
    connection: sqlite3.Connection,
    rid: int,
    tables: Iterable[Table],
    *,
    record_bytes: int = RECORD_BYTES,
    rows_are_shared: bool = False,
) -> None:
    """Make this database replica `rid` with these tables; what is in place already stays.

    The connection is in autocommit mode. A table that holds rows before it is captured is
    refused, because no other replica would ever get them, unless every replica has the same rows
    (`rows_are_shared`).
    """
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("BEGIN IMMEDIATE")
    try:
        _install(connection, rid, tuple(tables), record_bytes, rows_are_shared=rows_are_shared)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _install(
    connection: sqlite3.Connection,
    rid: int,
    tables: tuple[Table, ...],
    record_bytes: int,
    *,
    rows_are_shared: bool,
) -> None:
    there = _objects(connection)
    if "_slackwater_origin" in there:
        _check_origin(connection, rid)
        _add_columns(connection)
    else:
        _create_system(connection, rid)
    connection.execute("UPDATE _slackwater_origin SET record_bytes = ?", (record_bytes,))
    _check_names(tables)
    user_triggers.check(connection, tables)
    wanted = INDEXES | CAPTURE
    for table in tables:
        capture = triggers(table, read(connection, table))
        if not rows_are_shared and not any(name in there for name in capture):
            _check_empty(connection, table)
        wanted |= capture
    _apply_schema(connection, wanted)


def _check_origin(connection: sqlite3.Connection, rid: int) -> None:
    found, owner = connection.execute("SELECT format, rid FROM _slackwater_origin").fetchone()
    if found > FORMAT:
        raise StateError(
            f"the database is of format {found}, this agent knows {FORMAT}: upgrade the agent"
        )
    if owner != rid:
        raise StateError(
            f"the database is that of replica {owner}, not of {rid}: a copy of another replica's"
            " file cannot become a new replica"
        )


def _add_columns(connection: sqlite3.Connection) -> None:
    """Add the columns that the database of an earlier agent lacks."""
    for table, columns in ADDED.items():
        query = f"SELECT name FROM pragma_table_info({sql.string(table)})"  # noqa: S608 quoted
        there = {name for (name,) in connection.execute(query)}
        for name, definition in columns.items():
            if name not in there:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {definition}")


def _create_system(connection: sqlite3.Connection, rid: int) -> None:
    for statement in TABLES.values():
        connection.execute(statement)
    connection.execute(
        "INSERT INTO _slackwater_origin (id, format, rid) VALUES (1, ?, ?)", (FORMAT, rid)
    )
    connection.execute("INSERT INTO _slackwater_position (id) VALUES (1)")
    connection.executemany("INSERT INTO _slackwater_scales VALUES (?, ?, ?, ?)", scales())


def _check_names(tables: tuple[Table, ...]) -> None:
    names = [table.name.lower() for table in tables]
    for table, name in zip(tables, names, strict=True):
        if name.startswith((PREFIX, "sqlite_")):
            raise ConfigError(f"table {table.name}: names with this prefix are reserved")
        if names.count(name) > 1:
            raise ConfigError(
                f"table {table.name}: another name differs only in case, which SQLite ignores"
            )


def _check_empty(connection: sqlite3.Connection, table: Table) -> None:
    if connection.execute(sql.any_row(table.name)).fetchone():
        raise ConfigError(
            f"table {table.name} has rows already, which no other replica would get: start with an"
            " empty table, or confirm that every replica has the same rows (rows_are_shared)"
        )


def _apply_schema(connection: sqlite3.Connection, wanted: Mapping[str, str]) -> None:
    """Create the objects wanted; drop the agent's others, and those with another definition."""
    there = _objects(connection)
    wrong = [name for name in there if name not in TABLES and wanted.get(name) != there[name][1]]
    order = {"trigger": 0, "view": 1, "index": 2, "table": 3}
    for name in sorted(wrong, key=lambda one: order[there[one][0]]):
        connection.execute(f"DROP {there[name][0]} {sql.name(name)}")
    for name, statement in wanted.items():
        if name not in there or name in wrong:
            connection.execute(statement)
    if wrong:
        log.info("changed capture objects: %s", ", ".join(wrong))


def _objects(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """Name -> (type, CREATE statement) of the agent's objects in the database."""
    rows = connection.execute(
        "SELECT name, type, sql FROM sqlite_schema"
        " WHERE type IN ('table', 'view', 'trigger', 'index') AND substr(name, 1, ?) = ?",
        (len(PREFIX), PREFIX),
    )
    return {name: (kind, text) for name, kind, text in rows}
