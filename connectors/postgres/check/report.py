"""A database as an agent would find it, for a person."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from connectors.agent.found import (
    CheckedColumn,
    CheckedPoint,
    CheckedTable,
    ConstraintKind,
    DatabaseCheck,
    TableConstraint,
    constraint_warnings,
)
from connectors.agent.lacking import lacking_text, present_part
from connectors.postgres.check.attached_points import attached_points
from connectors.postgres.check.kept import saved_count, uncarried_rows
from connectors.postgres.check.rights import (
    may_read,
    may_use_schema,
    replication_point,
    rights_points,
)
from connectors.postgres.check.rows import lost_references, row_count, row_faults
from connectors.postgres.check.server_points import server_points
from connectors.postgres.check.table_faults import table_faults
from connectors.postgres.install.attachment import read_attachment
from connectors.postgres.names import PUBLICATION
from connectors.postgres.schema.catalog import ServerTable, primary_key, read_table
from connectors.postgres.schema.document import schema_table
from connectors.postgres.schema.generate import user_tables
from connectors.postgres.sql import Session
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import Table
from streaming.core.model.values import EXPECTED
from streaming.core.schema.document import SchemaTable


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A configured table that is in the database."""

    table: Table
    server: ServerTable
    schema: SchemaTable
    rows: int
    is_published: bool

    @property
    def known(self) -> Table:
        """The table with those of its columns that are there."""
        return present_part(self.table, self.server.columns)

    @property
    def is_whole(self) -> bool:
        """Return whether all columns of its key are there."""
        return set(self.known.columns) <= self.server.columns.keys()


def checked(
    session: Session,
    dsn: str,
    tables: Sequence[Table],
    *,
    rows_are_shared: bool,
    record_bytes: int,
    looks_at_references: bool,
    replica: str | None = None,
) -> DatabaseCheck:
    """What an agent would find; `replica`: whose database it has to be, if it is one's."""
    found = [*_found(session, tables)]
    constraints = tuple(one for each in found for one in _constraints(each))
    configured = {table.name for table in tables}
    others = [one for one in user_tables(session) if one not in configured]
    whole = [(one.known, one.server) for one in found if one.is_whole]
    readable = [(table, server) for table, server in whole if may_read(session, server)]
    has_own = may_use_schema(session)
    return DatabaseCheck(
        tuple(_table(one) for one in found),
        tuple(column for one in found for column in _columns(one)),
        constraints,
        tuple(one for one in others if not primary_key(session, read_table(session, one).oid)),
        tuple(others),
        (
            *(text for one in found for text in _unconfigured(one)),
            *constraint_warnings(constraints),
        ),
        tuple(row_faults(session, readable, record_bytes)),
        tuple(_owner_faults(session, replica)) if has_own else (),
        () if rows_are_shared or not has_own else tuple(_to_snapshot(session, found)),
        tuple(uncarried_rows(session)) if has_own else (),
        saved_count(session) if has_own else 0,
        tuple(
            text
            for one in found
            if looks_at_references and (one.known, one.server) in readable
            for text in lost_references(session, one.server, one.schema.references)
        ),
        (
            *points_before(session, dsn, tables),
            *(attached_points(session, whole) if has_own else ()),
        ),
    )


def _owner_faults(session: Session, replica: str | None) -> Iterator[str]:
    found = read_attachment(session)
    if found is not None and replica not in (None, found.replica):
        yield (
            f"the database is that of replica {found.replica}, not of {replica}: check the address"
            " and the name of the replica"
        )


def points_before(session: Session, dsn: str, tables: Sequence[Table]) -> Iterator[CheckedPoint]:
    """What was checked of the server, the role and the tables, attached or not."""
    yield from server_points(session)
    yield replication_point(dsn)
    servers = list[ServerTable]()
    for table in tables:
        faults = [*table_faults(session, table)]
        yield from (CheckedPoint(f"table {table.name}", fault) for fault in faults)
        if not faults:
            servers.append(read_table(session, table.name))
            yield CheckedPoint(f"table {table.name}, its key, columns, constraints and triggers")
    yield from rights_points(session, servers)


def _found(session: Session, tables: Sequence[Table]) -> Iterator[FoundTable]:
    rows = session.execute(
        "SELECT r.prrelid FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid"
        " WHERE p.pubname = %s",
        (PUBLICATION,),
    ).fetchall()
    published = {row[0] for row in rows}
    for table in tables:
        try:
            server = read_table(session, table.name)
        except ConfigError:  # it is among the complaints
            continue
        schema, count = schema_table(session, server), row_count(session, server)
        yield FoundTable(table, server, schema, count, server.oid in published)


def _table(found: FoundTable) -> CheckedTable:
    triggers = tuple(one.name for one in found.schema.triggers)
    return CheckedTable(found.table.name, found.rows, found.is_published, triggers)


def _columns(found: FoundTable) -> Iterator[CheckedColumn]:
    for column in found.schema.columns:
        kind = found.table.columns.get(column.name)
        yield CheckedColumn(
            found.table.name,
            column.name,
            column.declared,
            None if kind is None else kind.value,
            "stays in this database" if kind is None else EXPECTED[kind],
            column.default,
        )


def _unconfigured(found: FoundTable) -> Iterator[str]:
    for name in found.table.columns:
        if name not in found.known.columns:
            yield f"table {found.table.name}: {lacking_text(name)}"
    for column in found.schema.columns:
        if column.name not in found.table.columns and column.generated is None:
            yield (
                f"table {found.table.name}: column {column.name} is not configured: its values stay"
                " in this database, and the replicas differ in it; add it to the table's columns"
            )


def _constraints(found: FoundTable) -> Iterator[TableConstraint]:
    table, schema = found.table.name, found.schema
    for unique in schema.uniques:
        if set(unique.columns) != set(found.table.key) or unique.where:
            yield TableConstraint(table, ConstraintKind.UNIQUE, unique.columns, unique.text)
    for check in schema.checks:
        yield TableConstraint(table, ConstraintKind.CHECK, (), f"CHECK ({check})")
    for one in schema.references:
        yield TableConstraint(table, ConstraintKind.FOREIGN_KEY, one.columns, one.text)


def _to_snapshot(session: Session, found: Sequence[FoundTable]) -> list[str]:
    """The tables whose rows are told when the agent starts."""
    if read_attachment(session) is None:
        return [one.table.name for one in found if one.rows]
    rows = session.execute('SELECT "table" FROM slackwater.snapshot WHERE NOT is_complete')
    return [row[0] for row in rows.fetchall()]
