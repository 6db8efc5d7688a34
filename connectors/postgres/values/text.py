"""A value's text in PostgreSQL, as its output function writes it, and its JSON on the wire.

The text is that of a reader with the agent's settings: DateStyle ISO, TimeZone UTC, IntervalStyle
postgres, extra_float_digits 3, bytea_output hex.
"""

import base64
import math
from collections.abc import Mapping

from connectors.postgres.values.times import text_of_time, time_of_text
from streaming.core.model.errors import WireError
from streaming.core.model.table import ColumnType
from streaming.core.model.values import (
    EXPECTED,
    canonical_text,
    from_json,
    json_text,
    to_json,
)

TEXT_SETTINGS: Mapping[str, str] = {
    "datestyle": "ISO",
    "timezone": "UTC",
    "intervalstyle": "postgres",
    "extra_float_digits": "3",
    "bytea_output": "hex",
}
"""The settings of a connection of which the text of values depends."""

_BOOLS = {"t": "true", "f": "false"}


def wire_text(text: str | None, kind: ColumnType) -> str | None:
    """The canonical JSON text of a value; None: it is a value that the wire's type has not.

    `text`: None for null.
    """
    if text is None:
        return "null"
    match kind:
        case ColumnType.BOOL:
            return _BOOLS.get(text)
        case ColumnType.INT32:
            return text if _is_int(text, 2**31) else None
        case ColumnType.INT64:
            return f'"{text}"' if _is_int(text, 2**63) else None
        case ColumnType.FLOAT64:
            return _float_text(text)
        case ColumnType.DECIMAL:
            return canonical_text(text, kind)
        case ColumnType.TEXT:
            return json_text(text)
        case ColumnType.BYTES:
            return _bytes_text(text)
        case ColumnType.TIMESTAMP:
            time = time_of_text(text)
            return None if time is None else canonical_text(time, kind)


def server_text(value: object, kind: ColumnType) -> str | None:
    """The text of a value as PostgreSQL reads it; WireError: it is none that it can have.

    `value`: as JSON has it; None is null.
    """
    if value is None:
        return None
    if kind is ColumnType.TIMESTAMP:
        time = text_of_time(value) if isinstance(value, str) else None
        if time is None or canonical_text(value, kind) is None:
            raise WireError(f"{value!r} is not {EXPECTED[kind]}")
        return time
    if kind is ColumnType.DECIMAL and canonical_text(value, kind) is not None:
        return str(value)
    typed = from_json(value, kind)
    match typed:
        case bool():
            return "t" if typed else "f"
        case bytes():
            return f"\\x{typed.hex()}"
        case float():
            return str(to_json(typed, kind))
        case str() if "\0" in typed:
            raise WireError("PostgreSQL has no text with a character U+0000: write text without it")
        case _:
            return str(typed)


def _is_int(text: str, limit: int) -> bool:
    try:
        return -limit <= int(text) < limit and str(int(text)) == text
    except ValueError:
        return False


def _float_text(text: str) -> str | None:
    """The shortest digits in Python's spelling, which other agents write: 1.0, not 1."""
    try:
        value = float(text)
    except ValueError:
        return None
    is_named = text in ("NaN", "Infinity", "-Infinity")
    return (
        None
        if not (math.isfinite(value) or is_named)
        else json_text(to_json(value, ColumnType.FLOAT64))
    )


def _bytes_text(text: str) -> str | None:
    if not text.startswith("\\x"):
        return None
    try:
        return f'"{base64.b64encode(bytes.fromhex(text[2:])).decode("ascii")}"'
    except ValueError:
        return None
