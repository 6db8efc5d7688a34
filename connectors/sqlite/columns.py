"""The forms of a column's value: in SQLite, in a captured image, and in SQL that validates it.

A captured image is JSON text that any SQLite client can write in a trigger. It is the wire's form
except for two types that SQL cannot write so: bytes are {"x": hex}, and a float is
{"r": "exponent:whole:fraction"}, because SQLite's own text of a float is not exact.
"""

import math
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from connectors import wire
from connectors.sqlite import sql
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import Json, Value, json_text, to_json

Stored = int | float | str | bytes | None
"""A value as SQLite holds it."""

SCALE_BITS = 50
FRACTION_BITS = 53
_LOWEST_EXPONENT = -1074
_HIGHEST_EXPONENT = 1023

CREATE_SCALES = (
    "CREATE TABLE _slackwater_scales (low REAL PRIMARY KEY, exponent INTEGER NOT NULL,"
    " first REAL NOT NULL, second REAL NOT NULL)"
)


class Affinity(StrEnum):
    """The conversion that SQLite applies to a value stored in a column."""

    INTEGER = "INTEGER"
    """whole numbers become integers"""
    REAL = "REAL"
    """numbers become floats"""
    TEXT = "TEXT"
    """numbers become text"""
    NUMERIC = "NUMERIC"
    """text that looks like a number becomes one"""
    BLOB = "BLOB"
    """nothing is changed"""


AFFINITIES: dict[ColumnType, frozenset[Affinity]] = {
    ColumnType.BOOL: frozenset({Affinity.INTEGER, Affinity.NUMERIC, Affinity.BLOB}),
    ColumnType.INT32: frozenset({Affinity.INTEGER, Affinity.NUMERIC, Affinity.BLOB}),
    ColumnType.INT64: frozenset({Affinity.INTEGER, Affinity.NUMERIC, Affinity.BLOB}),
    ColumnType.FLOAT64: frozenset({Affinity.REAL}),
    ColumnType.DECIMAL: frozenset({Affinity.TEXT, Affinity.BLOB}),
    ColumnType.TEXT: frozenset({Affinity.TEXT, Affinity.BLOB}),
    ColumnType.BYTES: frozenset(Affinity),
    ColumnType.TIMESTAMP: frozenset({Affinity.TEXT, Affinity.NUMERIC, Affinity.BLOB}),
}
"""The affinities that keep every value of a type unchanged."""

STORED_AS = {
    ColumnType.BOOL: "0 or 1",
    ColumnType.INT32: "an integer of 32 bits",
    ColumnType.INT64: "an integer",
    ColumnType.FLOAT64: "a float, or the text NaN",
    ColumnType.DECIMAL: "text of decimal digits without leading zeros, like -12.50",
    ColumnType.TEXT: "text",
    ColumnType.BYTES: "a blob",
    ColumnType.TIMESTAMP: "text like 2024-02-29T23:59:59.000001Z, in UTC",
}
"""The form that a value of a type must have in SQLite, for messages."""


def affinity(declared: str) -> Affinity:
    """The affinity of a declared type (SQLite: "Datatypes", section 3.1)."""
    upper = declared.upper()
    if "INT" in upper:
        return Affinity.INTEGER
    if any(part in upper for part in ("CHAR", "CLOB", "TEXT")):
        return Affinity.TEXT
    if not upper or "BLOB" in upper:
        return Affinity.BLOB
    if any(part in upper for part in ("REAL", "FLOA", "DOUB")):
        return Affinity.REAL
    return Affinity.NUMERIC


def valid_sql(value: str, kind: ColumnType) -> str:
    """An SQL condition: this value, which is not null, is one of the type."""
    match kind:
        case ColumnType.BOOL:
            return f"typeof({value}) = 'integer' AND {value} IN (0, 1)"
        case ColumnType.INT32:
            return f"typeof({value}) = 'integer' AND {value} BETWEEN -2147483648 AND 2147483647"
        case ColumnType.INT64:
            return f"typeof({value}) = 'integer'"
        case ColumnType.FLOAT64:
            return f"typeof({value}) = 'real' OR {value} IS 'NaN'"
        case ColumnType.DECIMAL:
            digits = f"substr({value}, 1 + ({value} GLOB '-*'))"
            return (
                f"typeof({value}) = 'text' AND {digits} GLOB '[0-9]*' AND {digits} GLOB '*[0-9]'"
                f" AND {digits} NOT GLOB '*[^0-9.]*' AND {digits} NOT GLOB '*.*.*'"
                f" AND {digits} NOT GLOB '0[0-9]*'"
            )
        case ColumnType.TEXT:
            return f"typeof({value}) = 'text'"
        case ColumnType.BYTES:
            return f"typeof({value}) = 'blob'"
        case ColumnType.TIMESTAMP:
            digit = "[0-9]"
            form = f"{digit * 4}-{digit * 2}-{digit * 2}T{digit * 2}:{digit * 2}:{digit * 2}"
            return (
                f"typeof({value}) = 'text' AND {value} GLOB '{form}.{digit * 6}Z'"
                f" AND {value} >= '0001'"
                f" AND strftime('%Y-%m-%dT%H:%M:%S', substr({value}, 1, 19), '+0 seconds')"
                f" = substr({value}, 1, 19)"
            )


def json_sql(value: str, kind: ColumnType) -> str:
    """An SQL expression: the value's text in a captured image."""
    return f"CASE WHEN {value} IS NULL THEN 'null' ELSE {_json_sql(value, kind)} END"


def _json_sql(value: str, kind: ColumnType) -> str:
    match kind:
        case ColumnType.BOOL:
            return f"CASE {value} WHEN 0 THEN 'false' ELSE 'true' END"
        case ColumnType.INT32:
            return value
        case ColumnType.INT64 | ColumnType.DECIMAL | ColumnType.TIMESTAMP:
            return f"'\"' || {value} || '\"'"
        case ColumnType.FLOAT64:
            return (
                f"CASE WHEN {value} IS 'NaN' THEN '\"NaN\"'"
                f" WHEN {value} = 9e999 THEN '\"Infinity\"'"
                f" WHEN {value} = -9e999 THEN '\"-Infinity\"'"
                f" ELSE '{{\"r\":\"' || {_float_sql(value)} || '\"}}' END"
            )
        case ColumnType.TEXT:
            return f"json_quote({value})"
        case ColumnType.BYTES:
            return f"'{{\"x\":\"' || hex({value}) || '\"}}'"


def _float_sql(value: str) -> str:
    """exponent:whole:fraction, where value = (whole + fraction / 2^53) / 2^exponent exactly.

    Multiplying by powers of two is exact; the scale brings the value between 1 and 2^50.
    """
    whole = "CAST(scaled AS INTEGER)"
    fraction = f"CAST((scaled - {whole}) * {float(2**FRACTION_BITS)!r} AS INTEGER)"
    return (
        f"(SELECT exponent || ':' || {whole} || ':' || {fraction} FROM"  # noqa: S608
        f" (SELECT exponent, {value} * first * second AS scaled FROM _slackwater_scales"
        f" WHERE low <= abs({value}) ORDER BY low DESC LIMIT 1))"
    )


def scales() -> list[tuple[float, int, float, float]]:
    """The rows of the scales table: from `low` on, value * first * second is within 1 and 2^50."""
    return [
        (
            0.0 if exponent == _LOWEST_EXPONENT else math.ldexp(1.0, exponent),
            -exponent,
            math.ldexp(1.0, min(-exponent, _HIGHEST_EXPONENT)),
            math.ldexp(1.0, max(-exponent - _HIGHEST_EXPONENT, 0)),
        )
        for exponent in range(_LOWEST_EXPONENT, _HIGHEST_EXPONENT + 1, SCALE_BITS)
    ]


def image_sql(table: Table, names: Iterable[str], row: str, prefix: str = "") -> str:
    """An SQL expression: the captured image of these columns of `row`, its alias in SQL.

    `prefix`: the prefix of the columns' names in `row`.
    """
    parts = [
        f"{sql.string(json_text(one) + ':')} || "
        + json_sql(f"{row}.{sql.name(prefix + one)}", table.columns[one])
        for one in names
    ]
    return "'{' || " + " || ',' || ".join(parts) + " || '}'"


def canonical(captured: str) -> str:
    """The wire's canonical text of a captured image or key."""
    values = wire.loads(captured).items()
    return json_text(
        {name: _plain(value) if isinstance(value, dict) else value for name, value in values}
    )


def _plain(value: dict[str, str]) -> Json:
    if "x" in value:
        return to_json(bytes.fromhex(value["x"]), ColumnType.BYTES)
    exponent, whole, fraction = (int(part) for part in value["r"].split(":"))
    return math.ldexp((whole << FRACTION_BITS) + fraction, -exponent - FRACTION_BITS)


def stored(value: Value) -> Stored:
    """A typed value as SQLite holds it."""
    match value:
        case bool():
            return int(value)
        case float() if math.isnan(value):
            return "NaN"  # SQLite would make it null
        case Decimal():
            return format(value, "f")
        case datetime():
            return str(to_json(value, ColumnType.TIMESTAMP))
        case _:
            return value
