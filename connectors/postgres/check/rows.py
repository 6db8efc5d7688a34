"""Rows that no other replica can take, or that refer to no row; every row is read."""
# ruff: noqa: S608 every name is quoted

from collections.abc import Iterator, Sequence

from connectors.agent.images import OVERHEAD_BYTES, null_faults, too_large
from connectors.postgres.check.rights import may_read
from connectors.postgres.schema.catalog import ServerTable
from connectors.postgres.sql import Session, name, statement, texts
from connectors.postgres.values.image import image
from streaming.core.model.table import Table
from streaming.core.schema.document import SchemaReference

FAULTS_MAX = 20
"""How many rows are listed, at most."""

_AT_ONCE = 2_000


def row_faults(
    session: Session, tables: Sequence[tuple[Table, ServerTable]], record_bytes: int
) -> Iterator[str]:
    """The first rows that cannot be carried, and how many there are."""
    count = 0
    for table, server in tables:
        for row in _rows(session, table, server):
            key = image({one: table.columns[one] for one in table.key}, row)
            whole = image(table.columns, row)
            size = len(key.text.encode()) + len(whole.text.encode())
            faults = null_faults(key.text) + whole.faults
            if size + OVERHEAD_BYTES > record_bytes and not faults:
                faults = (too_large("whole row", size),)
            count += bool(faults)
            if faults and count <= FAULTS_MAX:
                yield f"table {table.name} row {key.text}: {'; '.join(faults)}"
    if count > FAULTS_MAX:
        yield f"and {count - FAULTS_MAX} more rows"


def row_count(session: Session, server: ServerTable) -> int:
    """How many rows a table has; about how many, of one that the role may not read."""
    query = f"SELECT count(*) FROM {statement(server.sql)}"
    if not may_read(session, server):
        query = f"SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = {server.oid:d}"
    (count,) = session.execute(query.encode()).fetchone() or (0,)
    return int(count)


def lost_references(
    session: Session, server: ServerTable, references: Sequence[SchemaReference]
) -> Iterator[str]:
    """The first rows of a table that refer to no row, for each foreign key."""
    for one in references:
        mine = ", ".join(f"c.{_plain(column)}" for column in one.columns)
        there = " AND ".join(
            f"p.{_plain(parent)} = c.{_plain(column)}"
            for column, parent in zip(one.columns, one.parent, strict=True)
        )
        whole = " AND ".join(f"c.{_plain(column)} IS NOT NULL" for column in one.columns)
        query = (
            f"SELECT {mine} FROM {statement(server.sql)} c WHERE {whole} AND NOT EXISTS"
            f" (SELECT 1 FROM {_plain(one.table)} p WHERE {there}) LIMIT {FAULTS_MAX}"
        )
        for row in session.execute(query.encode()).fetchall():
            values = ", ".join(map(str, row))
            yield f"table {server.name} row ({values}) refers to no row of {one.table}"


def _rows(session: Session, table: Table, server: ServerTable) -> Iterator[dict[str, str | None]]:
    columns = [*table.columns]
    listed = ", ".join(map(_plain, columns))
    query = f"SELECT {listed} FROM {statement(server.sql)}"
    with session.transaction():
        session.execute(f"DECLARE found NO SCROLL CURSOR FOR {query}".encode())
        while rows := texts(session, f"FETCH {_AT_ONCE} FROM found"):
            yield from (dict(zip(columns, row, strict=True)) for row in rows)
        session.execute("CLOSE found")


def _plain(column: str) -> str:
    return statement(name(column))
