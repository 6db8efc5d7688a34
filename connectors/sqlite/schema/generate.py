"""The [[tables]] sections of a configuration, for a database that has none: a text to read over.

A column gets the first type of its declaration that keeps all of its rows; where that is a guess,
a comment says why. A table that cannot be replicated is a comment with the reason.
"""
# ruff: noqa: S608 every name is quoted

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from connectors.sqlite import sql
from connectors.sqlite.connections import reading
from connectors.sqlite.install.system import PREFIX
from connectors.sqlite.load import Prepare, nothing
from connectors.sqlite.schema import user_triggers
from connectors.sqlite.schema.catalog import Catalog, read
from connectors.sqlite.schema.document import database_schema
from connectors.sqlite.schema.inspection import inspect
from connectors.sqlite.values.columns import AFFINITIES, Affinity, image_sql
from connectors.sqlite.values.image import wire_image
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text
from streaming.core.schema.document import SchemaColumn, SchemaTable

T = ColumnType
_BY_WORD: tuple[tuple[str, tuple[ColumnType, ...]], ...] = (
    ("BOOL", (T.BOOL, T.INT64)),
    ("DATE|TIME", (T.TIMESTAMP, T.INT64, T.FLOAT64)),
    ("NUM|DEC|MONEY|CURRENCY", (T.DECIMAL,)),
)
"""What a declaration of NUMERIC affinity names -> the types that it may mean."""
_BY_AFFINITY: Mapping[Affinity, tuple[ColumnType, ...]] = {
    Affinity.INTEGER: (T.INT64, T.DECIMAL),
    Affinity.REAL: (T.FLOAT64, T.DECIMAL),
    Affinity.TEXT: (T.TEXT, T.BYTES),
    Affinity.NUMERIC: (T.DECIMAL, T.TIMESTAMP, T.BYTES),
    Affinity.BLOB: (T.BYTES, T.TEXT, T.INT64, T.DECIMAL),
}
_UNTYPED = (T.TEXT, T.INT64, T.DECIMAL, T.BYTES)


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The type of a column, and why it is not certain; None: it is left out."""

    name: str
    kind: ColumnType | None
    why: str | None = None


def generated_tables(database: Path, prepare: Prepare = nothing) -> str:
    """The sections for every table of a database, which is only read; StateError: there is none."""
    with reading(database, prepare) as connection:
        return "\n".join(_sections(connection))


def _sections(connection: sqlite3.Connection) -> Iterator[str]:
    chosen = list[Table]()
    for name, kind in _names(connection):
        if kind != "table":
            yield _left_out(name, [f"it is a {kind} table, which its database keeps by itself"])
            continue
        (table,) = database_schema(connection, "", [name]).tables
        key = key_of(table)
        if key is None:
            yield _left_out(name, [_NO_KEY])
            continue
        columns = [*_columns(connection, table, key)]
        wanted = Table(name, key, {one.name: one.kind for one in columns if one.kind})
        reasons = _reasons(connection, chosen, wanted)
        if reasons:
            yield _left_out(name, reasons)
            continue
        chosen.append(wanted)
        yield _section(wanted, columns)


_NO_KEY = (
    "it has no key: no columns are unique by their bytes; declare a primary key without COLLATE"
)


def _names(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """The user's tables, each ordinary, virtual, or the shadow of a virtual one."""
    rows = connection.execute(
        "SELECT l.name, l.type FROM pragma_table_list l JOIN sqlite_schema s ON s.name = l.name"
        " WHERE l.schema = 'main' AND l.type IN ('table', 'virtual', 'shadow')"
        " AND substr(l.name, 1, ?) <> ? AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        " ORDER BY s.rowid",
        (len(PREFIX), PREFIX),
    )
    return rows.fetchall()


def key_of(table: SchemaTable) -> tuple[str, ...] | None:
    """The columns by which rows are told apart: the primary key, else what is unique."""
    whole = [
        one.columns
        for one in table.uniques
        if not one.where
        and not any(one.collations)
        and all((column := table.column(name)) and not column.generated for name in one.columns)
    ]
    sure = [key for key in whole if all(_is_filled(table, name) for name in key)]
    return next(iter([*sure, *whole]), None)


def _is_filled(table: SchemaTable, name: str) -> bool:
    column = table.column(name)
    return column is not None and (column.not_null or column.id_source is not None)


def _columns(
    connection: sqlite3.Connection, table: SchemaTable, key: Sequence[str]
) -> Iterator[ColumnChoice]:
    kinds = {one.name: _candidates(one)[0] for one in table.columns}
    catalog = read(connection, Table(table.name, tuple(key), kinds))
    for column in table.columns:
        if column.generated:
            yield ColumnChoice(column.name, None, "generated: each database computes it")
        else:
            yield _choice(connection, table.name, column, catalog, in_key=column.name in key)


def _choice(
    connection: sqlite3.Connection,
    table: str,
    column: SchemaColumn,
    catalog: Catalog,
    *,
    in_key: bool,
) -> ColumnChoice:
    """The first type that keeps every row; else the first one."""
    key = (column.name,) if in_key else ()
    first, *others = _candidates(column)
    for kind in (first, *others):
        wanted = Table(table, key, {column.name: kind})
        query = f"SELECT {image_sql(catalog.stored(wanted), 'x')} FROM {sql.name(table)} x"
        if not any(wire_image(image).faults for (image,) in connection.execute(query)):
            why = _doubt(connection, table, column, kind) if kind is first else None
            other = f"declared {column.declared or 'without a type'}, but its rows are no {first}"
            return ColumnChoice(column.name, kind, why if kind is first else other)
    return ColumnChoice(
        column.name,
        first,
        f"declared {column.declared or 'without a type'}; some rows are no {first} and are not"
        " replicated until they are corrected: `slackwater agent check` names them",
    )


def _candidates(column: SchemaColumn) -> tuple[ColumnType, ...]:
    of = Affinity(column.storage)
    if of is Affinity.BLOB and "BLOB" not in column.declared.upper():
        return _UNTYPED
    if of is Affinity.NUMERIC:
        for word, kinds in _BY_WORD:
            if re.search(word, column.declared.upper()):
                return kinds
    return tuple(kind for kind in _BY_AFFINITY[of] if of in AFFINITIES[kind])


def _doubt(
    connection: sqlite3.Connection, table: str, column: SchemaColumn, kind: ColumnType
) -> str | None:
    """Why the first type of a declaration may not be what is meant; None: it is certain."""
    declared = column.declared or "without a type"
    has_some = connection.execute(
        f"SELECT 1 FROM {sql.name(table)} WHERE {sql.name(column.name)} IS NOT NULL LIMIT 1"
    ).fetchone()
    of = Affinity(column.storage)
    if kind is T.TIMESTAMP and "TIME" not in column.declared.upper():
        return (
            f"declared {declared}: other replicas store a date with a time of day; declare the"
            " column as TEXT and configure it as text to keep it as it is"
        )
    is_named = any(re.search(word, column.declared.upper()) for word, _ in _BY_WORD)
    if of is Affinity.NUMERIC and not is_named:
        return (
            f"declared {declared}: SQLite makes numbers of text there that looks like one; declare"
            " it as TEXT if it holds text"
        )
    if of is Affinity.BLOB and "BLOB" not in column.declared.upper():
        return f"declared {declared}: {'as its rows are' if has_some else 'it holds nothing yet'}"
    return None


def _reasons(connection: sqlite3.Connection, chosen: Iterable[Table], wanted: Table) -> list[str]:
    """Why the table cannot be replicated beside those that are chosen; empty: it can."""
    if not set(wanted.key) <= wanted.columns.keys():
        return [_NO_KEY]
    if not wanted.name.isprintable() or not all(map(str.isprintable, wanted.columns)):
        return ["its name, or one of a column, has a control character: give it another"]
    complaints = inspect(connection, [wanted], rows_are_shared=True).complaints
    return complaints or user_triggers.complaints(connection, [*chosen, wanted])


def _left_out(name: str, reasons: Iterable[str]) -> str:
    listed = "; ".join(one.removeprefix(f"table {name}: ") for one in reasons)
    return f"# table {_comment(name)} is left out: {_comment(listed)}\n"


def _section(table: Table, columns: Iterable[ColumnChoice]) -> str:
    lines = ["[[tables]]", f"name = {json_text(table.name)}", f"key = {json_text([*table.key])}"]
    lines += ["", "[tables.columns]", *(_line(one) for one in columns)]
    return "\n".join(lines) + "\n"


def _line(one: ColumnChoice) -> str:
    name = one.name if re.fullmatch(r"[A-Za-z0-9_-]+", one.name) else json_text(one.name)
    if one.kind is None:
        return f"# {_comment(one.name)} is left out, {_comment(one.why or '')}"
    why = f"  # {_comment(one.why)}" if one.why else ""
    return f'{name} = "{one.kind}"{why}'


def _comment(text: str) -> str:
    """A text on one line of a comment."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
