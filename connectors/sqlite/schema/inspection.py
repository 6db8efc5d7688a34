"""Whether a database can be replicated as configured: everything that prevents it, at once.

A complaint is refused at the start: the agent could not carry what the schema allows. A warning is
not: the user may want it so.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from connectors.agent.found import TableConstraint
from connectors.agent.lacking import lacking_text, present_part
from connectors.sqlite import sql
from connectors.sqlite.install.system import (
    CAPTURE_VIEW,
    PREFIX,
    SQLITE_PREFIX,
    lost_tables,
    lost_tables_text,
)
from connectors.sqlite.journal import new_columns, uncaptured
from connectors.sqlite.journal.capture import CAPTURING_EVENTS, row_images
from connectors.sqlite.schema import user_triggers
from connectors.sqlite.schema.catalog import BINARY, Catalog, UniqueColumn, read
from connectors.sqlite.schema.compiled import compile_faults
from connectors.sqlite.schema.constraints import constraints_of
from connectors.sqlite.schema.defaults import default_fault
from connectors.sqlite.schema.references import action_warnings
from connectors.sqlite.values.columns import AFFINITIES, STORED_AS, Affinity
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import ColumnType, Table


@dataclass(slots=True)
class Inspection:
    """What was found; `catalogs` are those of the tables that are in the database.

    `constraints`: those beside the keys. `actions`: warnings of what their foreign keys do not do.
    `unreplicated`: the columns of these tables that are not configured, each as table.column.
    `known`: table -> the table with those of its columns that the database has.
    `to_snapshot`: the tables that have rows which were written before they were captured, or whose
    column is back. `own_values`: table -> its columns that were not captured, if they have values.
    `uncompiled`: the tables whose functions or collations this connection lacks.
    """

    catalogs: dict[str, Catalog] = field(default_factory=dict)
    known: dict[str, Table] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    constraints: list[TableConstraint] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    unreplicated: list[str] = field(default_factory=list)
    to_snapshot: list[str] = field(default_factory=list)
    own_values: dict[str, list[str]] = field(default_factory=dict)
    uncompiled: list[str] = field(default_factory=list)

    def check(self) -> None:
        """ConfigError with every complaint, if there is one."""
        if len(self.complaints) == 1:
            raise ConfigError(self.complaints[0])
        if self.complaints:
            listed = "".join(f"\n  - {one}" for one in self.complaints)
            raise ConfigError(
                f"the database cannot be replicated for {len(self.complaints)} reasons:{listed}"
            )


def inspect(
    connection: sqlite3.Connection, tables: Sequence[Table], *, rows_are_shared: bool = False
) -> Inspection:
    """Compare the database with the configured tables; nothing is changed.

    `rows_are_shared`: rows that were not captured are the same at every replica.
    """
    found = Inspection()
    found.complaints += _name_complaints(tables)
    lost_own = lost_tables(connection)
    found.complaints += [lost_tables_text(lost_own)] if lost_own else []
    for whole in tables:
        try:
            catalog = read(connection, whole)
        except ConfigError as error:
            found.complaints.append(str(error))
            continue
        table = present_part(whole, catalog.columns)
        found.catalogs[table.name], found.known[table.name] = catalog, table
        about = f"table {table.name}: "
        lacking = [name for name in whole.columns if name not in table.columns]
        found.warnings += [about + lacking_text(name) for name in lacking]
        found.complaints += [about + text for text in complaints_of(catalog, table)]
        found.warnings += [about + text for text in warnings_of(catalog, table)]
        found.unreplicated += [f"{table.name}.{name}" for name in unconfigured(catalog, table)]
        if not set(table.key) <= set(catalog.columns):
            continue
        known = known_part(catalog, table)
        faults = compile_faults(connection, known, row_images(known, catalog))
        found.complaints += [about + text for text in faults.unknown + faults.limits]
        found.uncompiled += [table.name] if faults.unknown else []
        found.warnings += [
            f"{about}no row can be written: {text}; correct the trigger, or create what it names"
            for text in faults.others
        ]
        found.constraints += constraints_of(connection, table)
        lost = lost_triggers(connection, table)
        if lost and not rows_are_shared:
            found.complaints.append(about + _lost_text(connection, table, lost))
        elif lost or table.name in uncaptured.listed(connection):
            found.warnings.append(about + _UNCAPTURED)
        elif rows_are_shared:
            continue
        elif is_captured(connection, table):
            new = new_columns.new_columns(connection, table)
            if new_columns.is_back(connection, table, new):
                found.to_snapshot.append(table.name)
            elif new_columns.have_values(connection, table, new):
                found.own_values[table.name] = new
        elif connection.execute(sql.any_row(table.name)).fetchone():
            found.to_snapshot.append(table.name)
    found.actions += action_warnings(connection, tables)
    found.warnings += user_triggers.undefined_writes(connection, tables)
    found.complaints += user_triggers.complaints(connection, tables)
    return found


def _name_complaints(tables: Sequence[Table]) -> list[str]:
    names = [table.name.lower() for table in tables]
    reserved = [
        f"table {table.name}: names with this prefix are reserved: give the table another name"
        for table in tables
        if table.name.lower().startswith((PREFIX, SQLITE_PREFIX))
    ]
    double = [
        f"table {table.name}: another name differs only in case, which SQLite ignores: remove one"
        for table in tables
        if names.count(table.name.lower()) > 1
    ]
    return reserved + double


def complaints_of(catalog: Catalog, table: Table) -> list[str]:
    """Why the table cannot be replicated as configured; empty if it can."""
    missing = [name for name in (*table.columns, *table.key) if name not in catalog.columns]
    return [
        *(_missing_column(catalog, name) for name in dict.fromkeys(missing)),
        *_type_complaints(catalog, table),
        *_default_complaints(catalog, table),
        *(
            f"column {name} is generated: leave it out of the configuration"
            for name in table.columns
            if name in catalog.columns and catalog.columns[name].generated
        ),
        *(
            f"column {column.name} is NOT NULL without a default, but not replicated: no row of"
            " another replica could be stored; give it a default or add it to the columns"
            for column in catalog.columns.values()
            if column.is_required and column.name not in table.columns
        ),
        *(
            f"the unique index {index} is on an expression; REPLACE could delete rows by it"
            " unnoticed: make it a plain index, or one on a generated column"
            for index in catalog.expressions
        ),
        *([] if missing else _key_complaints(catalog, table)),
    ]


def _missing_column(catalog: Catalog, name: str) -> str:
    """What to do about a column that the database lacks, or has with letters of another case."""
    there = [one for one in catalog.columns if one.lower() == name.lower()]
    if there:
        return (
            f"column {name} is named {there[0]} in the database: name it so in the configuration,"
            " where case counts"
        )
    return (
        f"column {name} is not in the database: add it there first, or remove it from the"
        " configuration (after a RENAME COLUMN name the new one)"
    )


def unconfigured(catalog: Catalog, table: Table) -> list[str]:
    """The columns of the table that are stored and not configured."""
    return [
        column.name
        for column in catalog.columns.values()
        if column.name not in table.columns and not column.generated
    ]


def warnings_of(catalog: Catalog, table: Table) -> list[str]:
    """What is replicated otherwise than a user may expect."""
    unknown = [
        f"column {name} is not configured: its values stay in this database, and the"
        " replicas differ in it; add it to the table's columns"
        for name in unconfigured(catalog, table)
    ]
    keys = ", ".join(table.key)
    nulls = (
        f"its key ({keys}) may be null in SQLite, and such a row is not replicated: declare it"
        " NOT NULL"
    )
    return [*unknown, *([nulls] if catalog.has_null_keys else [])]


def constraint_summaries(constraints: Sequence[TableConstraint]) -> list[str]:
    """The same in a line for each table, for a log: what each means, `agent check` says."""
    of = dict[str, list[str]]()
    for one in constraints:
        of.setdefault(one.table, []).append(one.text)
    return [
        f"table {table}: {', '.join(texts)}: each database checks its own writes only;"
        " `slackwater agent check` says what follows"
        for table, texts in of.items()
    ]


def _type_complaints(catalog: Catalog, table: Table) -> list[str]:
    found = [
        (n, kind, catalog.columns[n]) for n, kind in table.columns.items() if n in catalog.columns
    ]
    return [
        f"column {name} is declared as {column.declared or 'nothing'}, which does not keep"
        f" every {kind} ({STORED_AS[kind]}): declare it as"
        f" {' or '.join(sorted(AFFINITIES[kind] - {Affinity.BLOB} or AFFINITIES[kind]))},"
        f" or configure it as {' or '.join(_kept_by(column.affinity))}"
        for name, kind, column in found
        if column.affinity not in AFFINITIES[kind]
    ]


def _kept_by(of: Affinity) -> list[ColumnType]:
    return [kind for kind in ColumnType if of in AFFINITIES[kind]]


def _default_complaints(catalog: Catalog, table: Table) -> list[str]:
    """The defaults that no replica could take; a statement that leaves the column out gets them."""
    stored = catalog.stored(known_part(catalog, table))
    faults = {
        name: default_fault(column.declared, column.default, stored[name].kind, is_exact=exact)
        for name, column in catalog.columns.items()
        if name in stored and column.default is not None
        for exact in (stored[name].is_exact,)
    }
    return [
        f"column {name} has a default that cannot be carried: {fault}"
        for name, fault in faults.items()
        if fault is not None
    ]


def known_part(catalog: Catalog, table: Table) -> Table:
    """The table with those of its columns that the database has."""
    columns: Mapping[str, ColumnType] = {
        name: kind for name, kind in table.columns.items() if name in catalog.columns
    }
    return Table(table.name, table.key, columns)


def _key_complaints(catalog: Catalog, table: Table) -> list[str]:
    key = {UniqueColumn(name, BINARY) for name in table.key}
    if any(set(unique) == key for unique in catalog.uniques if unique not in catalog.partial):
        return []
    columns = ", ".join(table.key)
    complaint = (
        f"its key ({columns}) is neither primary key nor unique in the database, or does not"
        f" compare by {BINARY}: declare it so"
    )
    return [complaint]


def _lost_text(connection: sqlite3.Connection, table: Table, lost: Sequence[str]) -> str:
    """What the agent says of a table that has lost these of its triggers, or all."""
    if not _triggers_on(connection, table.name):
        what = "triggers, because they were dropped, or the table was and was created again"
    elif len(lost) > 1:
        what = f"triggers {', '.join(lost)}, because they were dropped"
    else:
        what = f"trigger {lost[0]}, because it was dropped"
    return (
        f"it has lost its {what}: what was written since then was not captured. Write these rows to"
        " another replica, or take the others' rows: start the agent with --rows-are-shared, then"
        " run `slackwater resync AGREEMENT --table TABLE`, which overwrites them"
    )


_UNCAPTURED = (
    "it was written while it had lost triggers, and nobody knows what: `slackwater level` says no"
    " until `slackwater resync AGREEMENT --table TABLE` has copied it here"
)


def is_captured(connection: sqlite3.Connection, table: Table) -> bool:
    """Return whether all triggers that capture what is written to the table are there."""
    there = _triggers_on(connection, table.name)
    return bool(there) and not lost_triggers(connection, table)


def lost_triggers(connection: sqlite3.Connection, table: Table) -> list[str]:
    """The triggers that captured the table and are gone; empty if it never was captured.

    Only those without which a write is not captured, and which agents of every version made.
    """
    there = _triggers_on(connection, table.name)
    recorded = connection.execute(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND lower(name) = lower(?)",
        (f"{PREFIX}replaced_{table.name}",),
    )
    if not there and recorded.fetchone() is None:
        return []
    wanted = [f"{PREFIX}{event}_{table.name}" for event in CAPTURING_EVENTS]
    view = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (CAPTURE_VIEW,))
    if view.fetchone():
        there |= _triggers_on(connection, CAPTURE_VIEW)
        wanted += [f"{CAPTURE_VIEW}_{op}" for op in ("begin", "change", "commit")]
    return [name for name in wanted if name.lower() not in there]


def _triggers_on(connection: sqlite3.Connection, table: str) -> set[str]:
    """The names of the agent's triggers on the table or view, in lower case."""
    found = connection.execute(
        "SELECT lower(name) FROM sqlite_schema WHERE type = 'trigger'"
        " AND lower(tbl_name) = lower(?) AND substr(name, 1, ?) = ?",
        (table, len(PREFIX), PREFIX),
    )
    return {str(name) for (name,) in found}
