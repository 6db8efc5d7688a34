"""Queries a Delta table of the state in SQL, in this process: no JVM, nothing is written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from checkpoints.root import open_delta, storage_says, table_uri, what_to_check
from checkpoints.tables import SCHEMAS, TableName
from streaming.core.access.root import StateRoot
from streaming.core.model.errors import StateError

Value = str | int | bool


def open_table(root: StateRoot, name: TableName) -> DeltaTable | None:
    """The table as it is now; None: it was never made."""
    if isinstance(root, Path) and not (root / name).is_dir():
        return None
    try:
        return open_delta(root, name)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        where, says = table_uri(root, name), storage_says(error)
        raise StateError(
            f"the table {where} cannot be read ({says}): check its {what_to_check(root)}"
        ) from error


def file_sizes(table: DeltaTable) -> dict[str, int]:
    """Path of each data file of the table's version -> its bytes."""
    found = pa.table(table.get_add_actions(flatten=True))
    return dict(zip(found["path"].to_pylist(), found["size_bytes"].to_pylist(), strict=True))


def execute(table: DeltaTable, sql: str, schema: pa.Schema | None = None) -> pa.Table:
    """The result of a query over the table, which is named `t` in it, in the types of a schema.

    None: as the query has them. The stream casts by itself: `Table.cast` would import the functions
    of pyarrow, a tenth of a second for a command that needs none of them.
    """
    with _state_errors(table):
        found = QueryBuilder().register("t", table).execute(sql)
        return pa.RecordBatchReader.from_stream(found, schema=schema).read_all()


def each(table: DeltaTable, sql: str, **others: DeltaTable) -> Iterator[dict[str, Any]]:
    """The rows of `parts` as dictionaries."""
    for part in parts(table, sql, **others):
        yield from records(part)


@contextmanager
def _state_errors(table: DeltaTable) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # deltalake has no narrower one for a file that is gone
        where = table.table_uri
        raise StateError(f"the table {where} cannot be read: {storage_says(error)}") from error


def select(
    table: DeltaTable | None,
    name: TableName,
    *,
    columns: Sequence[str] | None = None,
    where: Iterable[str] = (),
    order_by: str = "",
    limit: int | None = None,
) -> pa.Table:
    """Rows in the types of the table's schema; a table that was never made has none.

    A column that the table lacks, which an earlier hub made, is null. `where`: conditions in SQL,
    all of which hold; see `equals`. `order_by`: SQL.
    """
    chosen = _chosen(name, columns)
    if table is None:
        return chosen.empty_table()
    there = _there(table, chosen)
    sql = _sql(there, where)
    sql += f" ORDER BY {order_by}" if order_by else ""
    sql += f" LIMIT {limit}" if limit is not None else ""
    return in_schema(execute(table, sql, there), chosen)


def scan(
    table: DeltaTable | None,
    name: TableName,
    *,
    columns: Sequence[str] | None = None,
    where: Iterable[str] = (),
) -> Iterator[pa.Table]:
    """As `select`, in any order and some thousand rows at a time, so that memory is bounded."""
    if table is None:
        return
    chosen = _chosen(name, columns)
    for part in parts(table, _sql(_there(table, chosen), where)):
        yield in_schema(part, chosen)


def parts(table: DeltaTable, sql: str, **others: DeltaTable) -> Iterator[pa.Table]:
    """The result of a query over the table, named `t`, some thousand rows in memory at a time.

    `others`: further tables of the query, by their names in it.
    """
    with _state_errors(table):
        query = QueryBuilder().register("t", table)
        for name, other in others.items():
            query = query.register(name, other)
        for batch in query.execute(sql):
            yield pa.table(batch)


def _chosen(name: TableName, columns: Sequence[str] | None) -> pa.Schema:
    schema = SCHEMAS[name]
    return schema if columns is None else pa.schema([schema.field(c) for c in columns])


def _there(table: DeltaTable, chosen: pa.Schema) -> pa.Schema:
    """Those of the columns that the table has."""
    known = {field.name for field in table.schema().fields}
    return pa.schema([field for field in chosen if field.name in known])


def in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in these columns, each cast to its type; null in those that they lack."""
    there = set(rows.column_names)
    columns = [
        rows[field.name] if field.name in there else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _sql(chosen: pa.Schema, where: Iterable[str]) -> str:
    names = ", ".join(quoted(column) for column in chosen.names)
    conditions = " AND ".join(f"({condition})" for condition in where)
    sql = f"SELECT {names} FROM t"  # noqa: S608  # names come from the schema
    return sql + (f" WHERE {conditions}" if conditions else "")


def equals(values: Mapping[str, Value | None]) -> list[str]:
    """Conditions that these columns have these values; None means any value."""
    return [f"{quoted(k)} = {literal(v)}" for k, v in values.items() if v is not None]


def among(column: str, values: Iterable[Value]) -> str:
    """The condition that a column has one of these values."""
    listed = ", ".join(literal(value) for value in values)
    return f"{quoted(column)} IN ({listed})" if listed else "false"


def quoted(column: str) -> str:
    """A column's name in SQL, where `table`, `to` and `offset` mean something else."""
    return '"' + column.replace('"', '""') + '"'


def literal(value: Value) -> str:
    """A value in SQL."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"


def records(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as dictionaries."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
