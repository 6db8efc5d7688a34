"""The forms of a column's value: in SQLite, in a captured image, and back in SQLite.

A captured image is JSON text that any SQLite client can write in a trigger. It is the wire's form
except for what SQL cannot write so: bytes are {"x": hex}, and a float is
{"r": "exponent:whole:fraction"}, because SQLite's own text of a float is not exact. A value that
is not written in its type's form is captured with its storage class and the type:
{"text": "1e3", "as": "decimal"}; image.py finds out what it means. SQL cannot write
text of a database in UTF-16 that is not valid, so it is captured as {"text_bytes": hex}.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from connectors.sqlite import sql
from connectors.sqlite.values.spellings import CANONICAL_TIME, Stored, TimeForm, spelled
from connectors.sqlite.values.text import survives_sql, utf16_text
from streaming.core.model.errors import WireError
from streaming.core.model.far_time import FarTime
from streaming.core.model.table import ColumnType
from streaming.core.model.values import Value, from_json, json_text, to_json

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
    ColumnType.FLOAT64: frozenset({Affinity.REAL, Affinity.NUMERIC}),
    ColumnType.DECIMAL: frozenset(Affinity),
    ColumnType.TEXT: frozenset({Affinity.TEXT, Affinity.BLOB}),
    ColumnType.BYTES: frozenset(Affinity),
    ColumnType.TIMESTAMP: frozenset({Affinity.TEXT, Affinity.NUMERIC, Affinity.BLOB}),
}
"""The affinities that keep a value of a type; a decimal keeps 15 digits where it is a number."""

NUMBERS = frozenset({Affinity.INTEGER, Affinity.REAL, Affinity.NUMERIC})
"""The affinities that make text a number."""

VALUE_CHARS_MAX = 16_000_000
"""A longer value is not captured: SQLite fails where an image exceeds a billion bytes."""

CHAINED_MAX = 50
"""No more texts are chained at a time: SQLite parses an expression to a depth of 1,000 only."""

STORED_AS = {
    ColumnType.BOOL: "0 or 1",
    ColumnType.INT32: "an integer of 32 bits",
    ColumnType.INT64: "an integer",
    ColumnType.FLOAT64: "a number, or the text NaN",
    ColumnType.DECIMAL: "a number, text of one like -12.50, or the text NaN",
    ColumnType.TEXT: "text",
    ColumnType.BYTES: "a blob",
    ColumnType.TIMESTAMP: "text like 2024-02-29 23:59:59 or 2024-02-29T23:59:59.000001Z, in UTC",
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


def valid_sql(value: str, kind: ColumnType, *, is_utf16: bool = False) -> str:
    """An SQL condition: this value, which is not null, is one of the type in its own form.

    GLOB does not look behind a character U+0000.
    """
    no_zero = f"instr({value}, char(0)) = 0"
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
                f" AND {digits} NOT GLOB '0[0-9]*' AND {no_zero}"
            )
        case ColumnType.TEXT:
            survives = f" AND {survives_sql(value)}" if is_utf16 else ""
            return f"typeof({value}) = 'text'{survives}"
        case ColumnType.BYTES:
            return f"typeof({value}) = 'blob'"
        case ColumnType.TIMESTAMP:
            digit = "[0-9]"
            form = f"{digit * 4}-{digit * 2}-{digit * 2}T{digit * 2}:{digit * 2}:{digit * 2}"
            return (
                f"typeof({value}) = 'text' AND {value} GLOB '{form}.{digit * 6}Z'"
                f" AND substr({value}, 1, 4) >= '0001'"  # a column would make a number of the text
                f" AND strftime('%Y-%m-%dT%H:%M:%S', substr({value}, 1, 19), '+0 seconds')"
                f" = substr({value}, 1, 19) AND {no_zero}"
            )


def json_sql(
    value: str, kind: ColumnType, *, is_exact: bool = False, is_utf16: bool = False
) -> str:
    """An SQL expression: the value's text in a captured image.

    `is_exact`: another spelling is not one of the type, because it would be another key.
    `is_utf16`: the database stores its text so.
    """
    too_long = ""
    if kind in (ColumnType.TEXT, ColumnType.BYTES):
        too_long = f" WHEN length({value}) > {VALUE_CHARS_MAX} THEN {omitted_sql(value)}"
    common = "" if is_exact else _common_sql(value, kind)
    return (
        f"CASE WHEN {value} IS NULL THEN 'null'{too_long}"
        f" WHEN {valid_sql(value, kind, is_utf16=is_utf16)} THEN {_json_sql(value, kind)}{common}"
        f" ELSE {_other_sql(value, kind, is_exact=is_exact, is_utf16=is_utf16)} END"
    )


def _common_sql(value: str, kind: ColumnType) -> str:
    """The commonest other spellings, which SQL can write in the type's form by itself.

    A float is the quotient of its digits and a power of ten, correctly rounded, if both are exact:
    with 15 digits at most. SQLite's own reading of a text may miss by the last bit.
    """
    match kind:
        case ColumnType.DECIMAL:
            text = f"printf('%.15g', {value})"
            digits = f"CAST(replace({text}, '.', '') AS REAL)"
            power = f"CAST('1e' || (length({text}) - instr({text}, '.')) AS REAL)"
            return (
                f" WHEN typeof({value}) = 'integer' THEN {_json_sql(value, kind)}"
                f" WHEN typeof({value}) = 'real' AND abs({value}) BETWEEN 0.001 AND 1e14"
                f" AND instr({text}, '.') AND {digits} / {power} = {value}"
                f" THEN '\"' || {text} || '\"'"
            )
        case ColumnType.TIMESTAMP:
            return (
                f" WHEN length({value}) = 19 AND substr({value}, 1, 4) >= '0001'"
                f" AND strftime('%Y-%m-%d %H:%M:%S', {value}, '+0 seconds') = {value}"
                f" THEN '\"' || substr({value}, 1, 10) || 'T' || substr({value}, 12)"
                " || '.000000Z\"'"
            )
        case _:
            return ""


def omitted_sql(value: str) -> str:
    """An SQL expression: in place of a value, how long it is."""
    return f"'{{\"bytes\":\"' || length(CAST({value} AS BLOB)) || '\"}}'"


def _other_sql(value: str, kind: ColumnType, *, is_exact: bool, is_utf16: bool) -> str:
    """A value that is not in the type's form, with its storage class and the type."""
    text = f"'{{\"text\":' || json_quote({value})"
    if is_utf16:
        as_bytes = f"'{{\"text_bytes\":\"' || hex(CAST({value} AS BLOB)) || '\"'"
        text = f"CASE WHEN {survives_sql(value)} THEN {text} ELSE {as_bytes} END"
    exact = ',"exact":true' if is_exact else ""
    infinite = f"CASE WHEN {value} < 0 THEN '-inf' ELSE 'inf' END"
    real = f"CASE WHEN abs({value}) = 9e999 THEN {infinite} ELSE {_float_sql(value)} END"
    return f"""CASE WHEN length({value}) > {VALUE_CHARS_MAX} THEN {omitted_sql(value)}
      ELSE CASE typeof({value}) WHEN 'integer' THEN '{{"integer":"' || {value} || '"'
        WHEN 'real' THEN '{{"real":"' || {real} || '"'
        WHEN 'text' THEN {text}
        ELSE '{{"blob":"' || hex({value}) || '"' END || ',"as":"{kind}"{exact}}}' END"""


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


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A configured column as the database holds it; `time_form`: how the agent writes its times.

    `is_exact`: part of the key and not a number, so that one value has one spelling. `is_utf16`:
    the database stores its text so.
    """

    kind: ColumnType
    affinity: Affinity
    is_key: bool = False
    time_form: TimeForm = CANONICAL_TIME
    is_utf16: bool = False

    @property
    def is_exact(self) -> bool:
        """Return whether another spelling would be another key."""
        is_number = self.kind in (ColumnType.DECIMAL, ColumnType.FLOAT64)
        return self.is_key and not (is_number and self.affinity in NUMBERS)

    @property
    def has_spellings(self) -> bool:
        """Return whether the database may hold one value in several spellings."""
        return not self.is_key and (
            self.kind is ColumnType.TIMESTAMP
            or (self.kind is ColumnType.DECIMAL and self.affinity not in NUMBERS)
        )

    def from_wire(self, value: object) -> Stored:
        """The wire's JSON of a value as this column holds it; WireError: it cannot be one.

        The commonest forms need no typed value in between.
        """
        if isinstance(value, str):
            if self.kind is ColumnType.TEXT:
                return utf16_text(value) if self.is_utf16 else value
            if self.kind is ColumnType.DECIMAL and self.affinity in NUMBERS:
                number = _shortest(value)
                if number is not None:
                    return number
        return self.stored(from_json(value, self.kind))

    def stored(self, value: Value) -> Stored:
        """A typed value as this column holds it; WireError: it cannot hold it exactly."""
        match value:
            case Decimal() if self.affinity in NUMBERS and not value.is_nan():
                return self._number(format(value, "f"))
            case datetime() if not self.is_key:
                return self.time_form.text(value)
            case _:
                return stored(value)

    def _number(self, text: str) -> int | float:
        decimal = Decimal(text)
        is_whole = decimal == decimal.to_integral_value() and abs(decimal) < 2**63
        number = int(decimal) if is_whole and self.affinity is not Affinity.REAL else float(decimal)
        found = spelled(number, ColumnType.DECIMAL)
        if found != text if self.is_key else found is None or Decimal(str(found)) != decimal:
            raise WireError(
                f"a column of affinity {self.affinity} holds {text} as {found}: declare it as TEXT"
            )
        return number


def captured_name(name: str) -> str:
    """What the expression of a captured image has of a column: its name, in SQL."""
    return sql.string(json_text(name) + ":")


def image_sql(columns: Mapping[str, StoredColumn], row: str, prefix: str = "") -> str:
    """An SQL expression: the captured image of these columns of `row`, its alias in SQL.

    `prefix`: the prefix of the columns' names in `row`.
    """
    parts = [
        f"{captured_name(name)} || "
        + json_sql(
            f"{row}.{sql.name(prefix + name)}",
            one.kind,
            is_exact=one.is_exact,
            is_utf16=one.is_utf16,
        )
        for name, one in columns.items()
    ]
    return f"'{{' || {_joined(parts)} || '}}'"


def _joined(parts: Sequence[str]) -> str:
    """These texts with commas between them, in groups: a chain of them all would be too deep."""
    groups = [
        " || ',' || ".join(parts[first : first + CHAINED_MAX])
        for first in range(0, len(parts), CHAINED_MAX)
    ]
    return groups[0] if len(groups) == 1 else " || ',' || ".join(f"({group})" for group in groups)


def stored(value: Value) -> Stored:
    """A typed value as SQLite holds it in its type's own form."""
    match value:
        case bool():
            return int(value)
        case float() if math.isnan(value):
            return "NaN"  # SQLite would make it null
        case Decimal():
            return str(to_json(value, ColumnType.DECIMAL))
        case datetime():
            return CANONICAL_TIME.text(value)
        case FarTime():
            return str(value)
        case _:
            return value


def _shortest(text: str) -> float | None:
    """The float whose own text this is; None: look closer."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if "." in text and "e" not in text and repr(number) == text else None
