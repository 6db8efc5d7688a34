"""A database as an agent would find it, for a person; nothing is changed."""

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from connectors.agent.found import (
    CheckedColumn,
    CheckedTable,
    DatabaseCheck,
    constraint_warnings,
)
from connectors.agent.images import OVERHEAD_BYTES, null_faults, too_large
from connectors.sqlite import sql
from connectors.sqlite.apply import saved
from connectors.sqlite.connections import reading
from connectors.sqlite.file import names_complaint
from connectors.sqlite.install.owner import owner_fault
from connectors.sqlite.journal import uncarried
from connectors.sqlite.journal.capture import row_images
from connectors.sqlite.load import Prepare, nothing
from connectors.sqlite.schema.catalog import Catalog, user_tables
from connectors.sqlite.schema.inspection import inspect, is_captured
from connectors.sqlite.schema.references import broken_references
from connectors.sqlite.schema.user_triggers import user_triggers
from connectors.sqlite.values.columns import STORED_AS
from connectors.sqlite.values.image import wire_image
from connectors.sqlite.values.text import stored_bytes
from streaming.core.model.table import Table
from streaming.core.records.record import RECORD_BYTES

FAULTS_MAX = 20
"""How many rows that cannot be carried are listed."""


def check_database(
    database: Path,
    tables: Sequence[Table],
    *,
    rows_are_shared: bool = False,
    record_bytes: int = RECORD_BYTES,
    prepare: Prepare = nothing,
    looks_at_references: bool = False,
    replica: str | None = None,
) -> DatabaseCheck:
    """Check a database; StateError if there is none.

    `looks_at_references`: also for rows that refer to no row, which reads all of them. `prepare`
    registers on the connection what the application's connections have. `replica`: whose database
    it has to be, if it is one's.
    """
    with reading(database, prepare) as connection:
        found = inspect(connection, tables, rows_are_shared=rows_are_shared)
        known = [table for table in tables if table.name in found.catalogs]
        complete = [
            table
            for name, table in found.known.items()
            if {*table.columns} <= {*found.catalogs[name].columns} and name not in found.uncompiled
        ]
        configured = {table.name.lower() for table in tables}
        others = [name for name in user_tables(connection) if name.lower() not in configured]
        faults = [names_complaint(database), owner_fault(connection, replica)]
        broken = broken_references(connection, tables) if looks_at_references else ()
        return DatabaseCheck(
            tuple(_table(connection, table) for table in known),
            tuple(one for table in known for one in _columns(table, found.catalogs[table.name])),
            tuple(found.constraints),
            tuple(name for name in others if not _has_key(connection, name)),
            tuple(others),
            (*found.warnings, *constraint_warnings(found.constraints), *found.actions),
            tuple(_row_faults(connection, complete, found.catalogs, record_bytes)),
            (*found.complaints, *filter(None, faults)),
            (*found.to_snapshot, *found.own_values),
            tuple(_uncarried(connection)),
            saved.count(connection) if saved.is_there(connection) else 0,
            tuple(broken),
        )


def _uncarried(connection: sqlite3.Connection) -> Iterator[str]:
    """The first rows that an agent lists as not replicated, and how many there are."""
    if not saved.is_there(connection):
        return
    for row in uncarried.listed(connection, FAULTS_MAX):
        since = datetime.fromtimestamp(row.since_ms / 1000, UTC)
        yield f"table {row.table} row {row.key}, since {since:%Y-%m-%d %H:%M:%S} UTC: {row.faults}"
    count = uncarried.count(connection)
    if count > FAULTS_MAX:
        yield f"and {count - FAULTS_MAX} more rows"


def _table(connection: sqlite3.Connection, table: Table) -> CheckedTable:
    (rows,) = connection.execute(f"SELECT count(*) FROM {sql.name(table.name)}").fetchone()  # noqa: S608
    triggers = [one for one in user_triggers(connection) if one.on == table.name.lower()]
    names = tuple(one.name for one in triggers)
    return CheckedTable(table.name, rows, is_captured(connection, table), names)


def _columns(table: Table, catalog: Catalog) -> Iterator[CheckedColumn]:
    for column in catalog.columns.values():
        kind = table.columns.get(column.name)
        yield CheckedColumn(
            table.name,
            column.name,
            column.declared,
            None if kind is None else kind.value,
            "stays in this database" if kind is None else STORED_AS[kind],
            column.default,
        )


def _has_key(connection: sqlite3.Connection, table: str) -> bool:
    columns = connection.execute(f"PRAGMA table_info({sql.name(table)})").fetchall()
    indexes = connection.execute(f"PRAGMA index_list({sql.name(table)})").fetchall()
    return any(row[5] for row in columns) or any(row[2] and not row[4] for row in indexes)


def _row_faults(
    connection: sqlite3.Connection,
    tables: Sequence[Table],
    catalogs: dict[str, Catalog],
    record_bytes: int,
) -> Iterator[str]:
    """The first rows that no other replica can take, and how many there are."""
    count = 0
    for table in tables:
        for key, image in connection.execute(row_images(table, catalogs[table.name])):
            in_key = wire_image(key).text
            faults = null_faults(in_key) + wire_image(image).faults
            size = len(stored_bytes(key)) + len(stored_bytes(image))
            if size + OVERHEAD_BYTES > record_bytes and not faults:
                faults = (too_large("whole row", size),)
            count += bool(faults)
            if faults and count <= FAULTS_MAX:
                yield f"table {table.name} row {in_key}: {'; '.join(faults)}"
    if count > FAULTS_MAX:
        yield f"and {count - FAULTS_MAX} more rows"
