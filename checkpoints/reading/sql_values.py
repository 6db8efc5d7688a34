"""Columns of rows as SQL has them: their types, and how DuckDB reads them from an image."""

from checkpoints.query import literal
from streaming.core.model.table import ColumnType

TYPES = {
    ColumnType.BOOL: "boolean",
    ColumnType.INT32: "int",
    ColumnType.INT64: "bigint",
    ColumnType.FLOAT64: "double",
    ColumnType.DECIMAL: "string",
    ColumnType.TEXT: "string",
    ColumnType.BYTES: "string",
    ColumnType.TIMESTAMP: "timestamp",
}
"""The type of a column; a decimal and bytes stay the text that the wire has."""

_TYPES = {**TYPES, ColumnType.TIMESTAMP: "timestamptz"}


def value_in_duckdb(table: str, column: str, kind: ColumnType) -> str:
    """A column of `image` in its type; a value that has no such form is named, and not null."""
    pointer = "/" + column.replace("~", "~0").replace("/", "~1")
    text, type_ = f"json_extract_string(image, {literal(pointer)})", _TYPES[kind]
    if type_ == "string":
        return text
    what = literal(f"column {column} of {table}, row ")
    wrong = f"error({what} || key || ': ' || {text} || {literal(f' is no {kind.value}')})"
    typed = f"coalesce(TRY_CAST({text} AS {type_}), CAST({wrong} AS {type_}))"
    return f"CASE WHEN {text} IS NULL THEN NULL ELSE {typed} END"
