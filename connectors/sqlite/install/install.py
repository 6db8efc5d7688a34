"""Makes a SQLite database a replica: the agent's tables, and triggers on the user's tables."""

import logging
import sqlite3
from collections.abc import Iterable, Mapping

from connectors.sqlite import sql
from connectors.sqlite.format_number import FORMAT
from connectors.sqlite.install import local_writes
from connectors.sqlite.install.system import (
    CAPTURE,
    INDEXES,
    LATER_TABLES,
    PREFIX,
    TABLES,
    column_names,
)
from connectors.sqlite.journal import new_columns, snapshot, uncaptured
from connectors.sqlite.journal.capture import triggers
from connectors.sqlite.schema.compiled import compile_faults, is_limit
from connectors.sqlite.schema.inspection import Inspection, inspect, lost_triggers
from connectors.sqlite.schema.references import acting_parents
from connectors.sqlite.transaction import atomic
from connectors.sqlite.values.columns import scales
from streaming.core.model.errors import ConfigError, StateError
from streaming.core.model.table import Table
from streaming.core.records.record import RECORD_BYTES

log = logging.getLogger(__name__)


def install(
    connection: sqlite3.Connection,
    rid: int,
    tables: Iterable[Table],
    *,
    record_bytes: int = RECORD_BYTES,
    rows_are_shared: bool = False,
    takes_snapshot: bool = False,
) -> Inspection:
    """Make this database replica `rid` with these tables; what is in place already stays.

    The connection is in autocommit mode. ConfigError with everything that prevents it, and
    nothing is changed. The rows of a table that holds some before it is captured are published
    in a snapshot, unless every replica has the same ones (`rows_are_shared`); so are those with a
    value of their own in a new column. `takes_snapshot`: all rows are, whoever wrote them.
    """
    wanted = tuple(tables)
    inspect(connection, wanted, rows_are_shared=rows_are_shared).check()
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    with atomic(connection):
        found = inspect(connection, wanted, rows_are_shared=rows_are_shared)
        found.check()
        if "_slackwater_origin" in objects(connection):
            _check_origin(connection, rid)
            _add_tables(connection)
            _add_columns(connection)
        else:
            _create_system(connection, rid, mode)
        known = [*found.known.values()]
        connection.execute("UPDATE _slackwater_origin SET record_bytes = ?", (record_bytes,))
        names = [table.name for table in wanted]
        local_writes.add_tables(connection, names)
        whole = names if takes_snapshot else found.to_snapshot
        snapshot.begin(connection, whole, {} if takes_snapshot else found.own_values)
        new_columns.note_gone(connection, wanted, found.known)
        lost = [table.name for table in wanted if lost_triggers(connection, table)]
        uncaptured.begin(connection, lost, names)  # their triggers are about to be made again
        objects_wanted = CAPTURE | INDEXES
        parents = acting_parents(connection, known)
        for table in known:
            has_actions = table.name.lower() in parents
            objects_wanted |= triggers(table, found.catalogs[table.name], has_actions=has_actions)
        _apply_schema(connection, objects_wanted)
        _check_compiled(connection, known)
    return found


def _check_compiled(connection: sqlite3.Connection, tables: Iterable[Table]) -> None:
    """ConfigError if a function or collation is lacking, or a limit of SQLite's is too low.

    A trigger that names tables of the agent's can only be compiled when these are there.
    """
    complaints = list[str]()
    for table in tables:
        faults = compile_faults(connection, table)
        complaints += [f"table {table.name}: {one}" for one in faults.unknown + faults.limits]
    Inspection(complaints=complaints).check()


def _check_origin(connection: sqlite3.Connection, rid: int) -> None:
    found, owner = connection.execute("SELECT format, rid FROM _slackwater_origin").fetchone()
    if found > FORMAT:
        raise StateError(
            f"the database is of format {found}, this agent knows {FORMAT}: upgrade the agent"
        )
    if owner != rid:
        raise StateError(
            f"the database is that of the replica with rid {owner}, not {rid}: check the path and"
            " the replica's name; a copy of another replica's file becomes an ordinary database"
            " with `slackwater agent uninstall`"
        )


def _add_tables(connection: sqlite3.Connection) -> None:
    there = objects(connection)
    missing = [name for name in TABLES if name not in there]
    for name in missing:
        connection.execute(TABLES[name])
    dropped = [name for name in missing if name not in LATER_TABLES]
    if dropped:
        log.warning("created %s, which somebody dropped: what it held is gone", ", ".join(dropped))


def _add_columns(connection: sqlite3.Connection) -> None:
    """Add what the tables of an older agent lack."""
    if "agreement" not in column_names(connection, "_slackwater_position"):
        column = "agreement TEXT NOT NULL DEFAULT ''"
        connection.execute(f"ALTER TABLE _slackwater_position ADD COLUMN {column}")
    if "replica" not in column_names(connection, "_slackwater_origin"):
        connection.execute("ALTER TABLE _slackwater_origin ADD COLUMN replica TEXT")
    if "columns" not in column_names(connection, "_slackwater_snapshot"):
        connection.execute("ALTER TABLE _slackwater_snapshot ADD COLUMN columns TEXT")


def _create_system(connection: sqlite3.Connection, rid: int, journal_mode: str) -> None:
    for statement in TABLES.values():
        connection.execute(statement)
    connection.execute(
        "INSERT INTO _slackwater_origin (id, format, rid, journal_mode) VALUES (1, ?, ?, ?)",
        (FORMAT, rid, journal_mode),
    )
    connection.execute("INSERT INTO _slackwater_position (id) VALUES (1)")
    connection.executemany("INSERT INTO _slackwater_scales VALUES (?, ?, ?, ?)", scales())


def _apply_schema(connection: sqlite3.Connection, wanted: Mapping[str, str]) -> None:
    """Create the objects wanted; drop the agent's others, and those with another definition."""
    there = objects(connection)
    wrong = {name for name in there if name not in TABLES and wanted.get(name) != there[name][1]}
    wrong |= _behind_the_users(connection)
    drop(connection, {name: there[name] for name in wrong})
    left = objects(connection)  # an index goes with its table
    for name, statement in wanted.items():
        if name not in left:
            _create(connection, name, statement)
    if wrong:
        log.info("changed capture objects: %s", ", ".join(sorted(wrong)))
    new = wanted.keys() - there.keys()
    if new and there.keys() - TABLES.keys():
        log.info("created capture objects: %s", ", ".join(sorted(new)))


def _create(connection: sqlite3.Connection, name: str, statement: str) -> None:
    """Create an object; ConfigError if it is larger than SQLite allows."""
    try:
        connection.execute(statement)
    except (sqlite3.OperationalError, sqlite3.DataError) as error:
        if not is_limit(str(error)):
            raise
        raise ConfigError(
            f"{name} is larger than this SQLite allows ({error}): replicate fewer columns of its"
            " table, or run the agent and your applications with a SQLite of higher limits"
        ) from error


def _behind_the_users(connection: sqlite3.Connection) -> set[str]:
    """The agent's AFTER triggers that are older than one of the user's on their table.

    SQLite fires the youngest first, and none behind one that fails a statement, but keeps what it
    has written (OR FAIL), or ignores the rest (RAISE(IGNORE)): such a row would not be captured.
    """
    rows = connection.execute(
        "SELECT a.name FROM sqlite_schema a WHERE a.type = 'trigger' AND substr(a.name, 1, ?1) = ?2"
        " AND instr(a.sql, ' AFTER ') AND EXISTS (SELECT 1 FROM sqlite_schema u"
        " WHERE u.type = 'trigger' AND u.tbl_name = a.tbl_name COLLATE NOCASE"
        " AND substr(u.name, 1, ?1) <> ?2 AND u.rowid > a.rowid)",
        (len(PREFIX), PREFIX),
    )
    return {name for (name,) in rows}


def drop(connection: sqlite3.Connection, there: Mapping[str, tuple[str, str]]) -> None:
    """Drop objects of the database, those that need others first."""
    order = {"trigger": 0, "view": 1, "index": 2, "table": 3}
    for name in sorted(there, key=lambda one: order[there[one][0]]):
        connection.execute(f"DROP {there[name][0]} IF EXISTS {sql.name(name)}")


def objects(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """Name -> (type, CREATE statement) of the agent's objects in the database."""
    rows = connection.execute(
        "SELECT name, type, sql FROM sqlite_schema"
        " WHERE type IN ('table', 'view', 'trigger', 'index') AND substr(name, 1, ?) = ?",
        (len(PREFIX), PREFIX),
    )
    return {name: (kind, text) for name, kind, text in rows}
