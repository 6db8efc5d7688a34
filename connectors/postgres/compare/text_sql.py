"""SQL expressions for the text of a row by which it is compared (core/compare/row_text.py).

They are for a session with the agent's text settings, and stand in queries with parameters.
"""

from collections.abc import Iterable, Sequence

from connectors.postgres.schema.catalog import ServerTable
from connectors.postgres.sql import name
from streaming.core.compare.row_text import NAN, ZERO
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text

CHAINED_MAX = 50
"""No more texts are chained at a time: the server's stack is bounded."""

PLAIN_TEXTS = ("text", "varchar")
"""Built-in types that are text; the text of any other is what its output function writes."""

UUID = "uuid"
"""The one type that the server orders as its text."""


def row_sql(table: Table, server: ServerTable, of: str) -> str:
    """The text of a row; `of`: the alias of its table."""
    return _object(table, server, table.columns, of)


def key_sql(table: Table, server: ServerTable, of: str) -> str:
    """The canonical text of a row's key."""
    return _object(table, server, table.key, of)


def order_sql(table: Table, server: ServerTable, of: str) -> list[str]:
    """What a row's key is compared by, column by column."""
    return [
        value
        if _is_ordered(table, server, column)
        else f'({_text(server, column, value)}) COLLATE "C"'
        for column in table.key
        for value in (f"{of}.{name(column)}",)
    ]


def bound_sql(table: Table, server: ServerTable) -> str:
    """The key columns of another row, given as texts, to be compared with `order_sql`."""
    casts = (
        server.columns[column].cast if _is_ordered(table, server, column) else "text"
        for column in table.key
    )
    return ", ".join(f"CAST(CAST(%s AS text) AS {cast.replace('%', '%%')})" for cast in casts)


def same_sql(server: ServerTable, column: str) -> str:
    """A value of a key column, given as text, to be compared with the column as it is declared."""
    return f"CAST(CAST(%s AS text) AS {server.columns[column].cast.replace('%', '%%')})"


def _object(table: Table, server: ServerTable, columns: Iterable[str], of: str) -> str:
    parts = [
        f"{_string(('{' if not place else ',') + json_text(column) + ':')} || coalesce("
        f"{_value(table, server, column, f'{of}.{name(column)}')}, 'null')"
        for place, column in enumerate(columns)
    ]
    return _joined([*parts, _string("}")])


def _joined(parts: Sequence[str]) -> str:
    groups = [
        f"({' || '.join(parts[first : first + CHAINED_MAX])})"
        for first in range(0, len(parts), CHAINED_MAX)
    ]
    return " || ".join(groups)


def _value(table: Table, server: ServerTable, column: str, value: str) -> str:
    """The text of a value; null: it is null."""
    base = server.columns[column].type.base.name
    match table.columns[column]:
        case ColumnType.BOOL | ColumnType.INT32:
            return f"{value}::text"
        case ColumnType.INT64:
            return f"'\"' || {value}::text || '\"'"
        case ColumnType.DECIMAL:
            exact = value if column in table.key else f"trim_scale({value})"
            return f"'\"' || {exact}::text || '\"'"
        case ColumnType.FLOAT64:
            return _float(f"{value}::text::float8" if base == "float4" else value)
        case ColumnType.BYTES:
            return f"'\"' || translate(encode({value}, 'base64'), E'\\n', '') || '\"'"
        case ColumnType.TIMESTAMP:
            return _time(f"({value} AT TIME ZONE 'UTC')" if base == "timestamptz" else value)
        case ColumnType.TEXT:
            return f"to_json({_text(server, column, value)})::text"


def _text(server: ServerTable, column: str, value: str) -> str:
    """The value as text; a cast writes another one than the output function for some types."""
    if _is_built_in(server, column, *PLAIN_TEXTS):
        return f"{value}::text"
    return f"CASE WHEN {value} IS DISTINCT FROM NULL THEN concat({value}) END"


def _float(value: str) -> str:
    return (
        f"CASE WHEN {value} = 0 THEN '\"{ZERO}\"' WHEN {value} = 'NaN' THEN '\"{NAN}\"'"
        f" ELSE '\"' || encode(float8send({value}), 'hex') || '\"' END"
    )


def _time(value: str) -> str:
    """The wire's text of a time, whose year is astronomical (values/times.py)."""
    rest = 'MM-DD"T"HH24:MI:SS.US"Z"'
    year = f"(extract(year FROM {value})::int + CASE WHEN extract(year FROM {value}) < 0"
    year = f"{year} THEN 1 ELSE 0 END)"
    sign = f"CASE WHEN {year} < 0 THEN '-' WHEN {year} > 9999 THEN '+' ELSE '' END"
    digits = f"lpad(abs({year})::text, greatest(4, length(abs({year})::text)), '0')"
    return (
        f"CASE WHEN {value} >= '0001-01-01' AND {value} < '10000-01-01'"
        f" THEN '\"' || to_char({value}, 'YYYY-{rest}') || '\"'"
        f" WHEN isfinite({value}) THEN '\"' || {sign} || {digits} ||"
        f" to_char({value}, '-{rest}') || '\"'"
        f" ELSE '\"' || {value}::text || '\"' END"
    )


def _is_ordered(table: Table, server: ServerTable, column: str) -> bool:
    """Return whether the server orders the values as core does; a text needs its bytes."""
    is_text = table.columns[column] is ColumnType.TEXT
    return not is_text or _is_built_in(server, column, UUID)


def _is_built_in(server: ServerTable, column: str, *names: str) -> bool:
    base = server.columns[column].type.base
    return base.is_built_in and base.name in names


def _string(text: str) -> str:
    return "'" + text.replace("'", "''").replace("%", "%%") + "'"
