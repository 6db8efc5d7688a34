"""A column's value and its JSON, for every type of column (docs/wire.md, Values)."""

import base64
import binascii
import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from streaming.core.model.errors import WireError
from streaming.core.model.far_time import FarTime, far_time
from streaming.core.model.table import ColumnType

Value = bool | int | float | Decimal | str | bytes | datetime | FarTime | None
"""A column's value: int for both integers, None for null.

A timestamp is an aware datetime, or a FarTime where no datetime is.
"""

Json = bool | int | float | str | None
"""A column's value as JSON has it."""

_DECIMAL = re.compile(r"-?(?:\d+(?:\.\d+)?|Infinity)|NaN", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_INT64 = re.compile(r"-?\d{1,19}", re.ASCII)
_NOT_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def json_text(value: object) -> str:
    """Return the canonical text: no spaces, no needless escapes; WireError if JSON has none."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError) as error:
        raise WireError(f"{value!r} cannot be written as JSON: {error}") from error


def to_json(value: Value, column_type: ColumnType) -> Json:
    """A column's value as JSON has it; WireError if it is not one of the column's type."""
    if value is None:
        return None
    match column_type, value:
        case ColumnType.BOOL, bool():
            return value
        case ColumnType.INT32, int() if not isinstance(value, bool) and -(2**31) <= value < 2**31:
            return value
        case ColumnType.INT64, int() if not isinstance(value, bool) and -(2**63) <= value < 2**63:
            return str(value)
        case ColumnType.FLOAT64, float() | int() if not isinstance(value, bool):
            return _float_json(float(value))
        case ColumnType.DECIMAL, Decimal():
            return "NaN" if value.is_nan() else format(value, "f")
        case ColumnType.TEXT, str():
            return _utf8(value)
        case ColumnType.BYTES, bytes():
            return base64.b64encode(value).decode("ascii")
        case ColumnType.TIMESTAMP, datetime() if value.tzinfo is not None:
            utc = value.astimezone(UTC).replace(tzinfo=None)
            return utc.isoformat(timespec="microseconds") + "Z"
        case ColumnType.TIMESTAMP, FarTime():
            return str(value)
        case _:
            raise WireError(f"{value!r} is not a value of type {column_type}")


def from_json(value: object, column_type: ColumnType) -> Value:
    """A column's value from its JSON; WireError if it does not fit the column's type."""
    if value is None:
        return None
    match column_type, value:
        case ColumnType.BOOL, bool():
            return value
        case ColumnType.INT32, int() if not isinstance(value, bool) and -(2**31) <= value < 2**31:
            return value
        case ColumnType.INT64, str() if _INT64.fullmatch(value) and -(2**63) <= int(value) < 2**63:
            return int(value)
        case ColumnType.FLOAT64, str() if value in _NOT_NUMBERS:
            return _NOT_NUMBERS[value]
        case ColumnType.FLOAT64, float() | int() if not isinstance(value, bool):
            return float(value)
        case ColumnType.DECIMAL, str() if _DECIMAL.fullmatch(value):
            return Decimal(value)
        case ColumnType.TEXT, str():
            return _utf8(value)
        case ColumnType.BYTES, str():
            return _bytes(value)
        case ColumnType.TIMESTAMP, str() if (time := _time(value)) is not None:
            return time
        case _:
            raise WireError(f"{value!r} is not a value of type {column_type}")


def comparable(value: Value) -> tuple[Any, ...]:
    """What values of one column are compared by: null is smallest, NaN largest, text by bytes.

    Numbers and times are ordered as by PostgreSQL ("Numeric Types", "Date/Time Types").
    """
    match value:
        case None:
            return (0,)
        case str():
            return 1, value.encode()
        case float() if math.isnan(value):
            return (2,)
        case Decimal() if value.is_nan():
            return (2,)
        case _:
            return 1, value


class Number(str):
    """A JSON number as it was written: 1.10 stays 1.10."""

    __slots__ = ()


EXPECTED = {
    ColumnType.BOOL: "true or false",
    ColumnType.INT32: "an int32 as a JSON number",
    ColumnType.INT64: "an int64 as a JSON string",
    ColumnType.FLOAT64: 'a float64 as a JSON number, or "NaN", "Infinity" or "-Infinity"',
    ColumnType.DECIMAL: (
        'a decimal as a JSON string, such as "1.50", or "NaN", "Infinity" or "-Infinity"'
    ),
    ColumnType.TEXT: "a JSON string",
    ColumnType.BYTES: "base64 as a JSON string",
    ColumnType.TIMESTAMP: (
        'a time in UTC with microseconds as a JSON string, such as "2024-02-29T23:59:59.000001Z",'
        ' or "infinity" or "-infinity"'
    ),
}
"""What the value of a column of the type must be, for a message."""


def canonical_text(value: object, column_type: ColumnType) -> str | None:
    """The canonical JSON text of a column's value; None if it is no canonical value of the type.

    `value`: as JSON has it, but numbers as Number, and not null. A value is canonical if `to_json`
    writes what `from_json` reads; a float64 stays as it was written.
    """
    return _CANONICAL[column_type](value)


def _bool(value: object) -> str | None:
    return ("true" if value else "false") if type(value) is bool else None


def _int32(value: object) -> str | None:
    is_one = type(value) is Number and _INTEGER.fullmatch(value) and _within(value, 2**31)
    return str(value) if is_one else None


def _int64(value: object) -> str | None:
    is_one = type(value) is str and _INTEGER.fullmatch(value) and _within(value, 2**63)
    return f'"{value}"' if is_one else None


def _float64(value: object) -> str | None:
    if type(value) is Number:
        return str(value) if math.isfinite(float(value)) else None
    return f'"{value}"' if type(value) is str and value in _NOT_NUMBERS else None


def _decimal(value: object) -> str | None:
    return f'"{value}"' if type(value) is str and _CANONICAL_DECIMAL.fullmatch(value) else None


def _string(value: object) -> str | None:
    return encode_basestring(value) if type(value) is str and is_utf8(value) else None


def _base64(value: object) -> str | None:
    return f'"{value}"' if type(value) is str and _is_base64(value) else None


def _timestamp(value: object) -> str | None:
    return f'"{value}"' if type(value) is str and _time(value) is not None else None


_CANONICAL: dict[ColumnType, Callable[[object], str | None]] = {
    ColumnType.BOOL: _bool,
    ColumnType.INT32: _int32,
    ColumnType.INT64: _int64,
    ColumnType.FLOAT64: _float64,
    ColumnType.DECIMAL: _decimal,
    ColumnType.TEXT: _string,
    ColumnType.BYTES: _base64,
    ColumnType.TIMESTAMP: _timestamp,
}
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_CANONICAL_DECIMAL = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|Infinity)|NaN")


def _within(digits: str, limit: int) -> bool:
    return -limit <= int(digits) < limit


def _is_base64(value: str) -> bool:
    try:
        return base64.b64encode(base64.b64decode(value, validate=True)).decode() == value
    except (binascii.Error, ValueError):
        return False


def is_utf8(value: str) -> bool:
    """Return whether the text can be encoded: no half of a surrogate pair is on its own."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def raw_text(value: object) -> str:
    """The compact JSON text of a parsed value, its numbers as they were written."""
    kind = type(value)
    if kind is str:
        return _text(value)  # type: ignore[arg-type]
    if kind is Number:
        return str(value)
    if isinstance(value, dict):
        members = [f"{_text(name)}:{raw_text(one)}" for name, one in value.items()]
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join([raw_text(one) for one in value])}]"
    return json_text(value)


def _text(value: str) -> str:
    """A string as JSON; one that cannot be encoded keeps its escapes."""
    return encode_basestring(value) if is_utf8(value) else json.dumps(value)


def _float_json(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _utf8(value: str) -> str:
    if not is_utf8(value):
        raise WireError(f"{value!r} is not text: half of a surrogate pair is on its own")
    return value


def _bytes(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise WireError(f"{value!r} is not base64: {error}") from error


def _time(value: str) -> datetime | FarTime | None:
    """The time of a canonical text; None: it is the text of none."""
    if _TIME.fullmatch(value):
        try:
            return datetime.fromisoformat(value)
        except ValueError:  # year 0 as well
            pass
    return far_time(value)
