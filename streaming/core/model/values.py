"""A column's value and how it looks in JSON, for every type of column (docs/wire.md, Values)."""

import base64
import binascii
import json
import math
import re
from datetime import UTC, datetime
from decimal import Decimal

from streaming.core.model.errors import WireError
from streaming.core.model.table import ColumnType

Value = bool | int | float | Decimal | str | bytes | datetime | None
"""A column's value: int for both integers, an aware datetime for a timestamp, None for null."""

Json = bool | int | float | str | None
"""A column's value as JSON has it."""

_DECIMAL = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_INT64 = re.compile(r"-?\d{1,19}", re.ASCII)
_NOT_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def json_text(value: object) -> str:
    """Canonical text: no spaces, no needless escapes; WireError for what JSON cannot say."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
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
        case ColumnType.DECIMAL, Decimal() if value.is_finite():
            return format(value, "f")
        case ColumnType.TEXT, str():
            return _utf8(value)
        case ColumnType.BYTES, bytes():
            return base64.b64encode(value).decode("ascii")
        case ColumnType.TIMESTAMP, datetime() if value.tzinfo is not None:
            utc = value.astimezone(UTC).replace(tzinfo=None)
            return utc.isoformat(timespec="microseconds") + "Z"
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
        case ColumnType.TIMESTAMP, str() if _TIME.fullmatch(value):
            return _time(value)
        case _:
            raise WireError(f"{value!r} is not a value of type {column_type}")


def _float_json(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _utf8(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise WireError(f"{value!r} is not text: half of a surrogate pair stands alone") from error
    return value


def _bytes(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise WireError(f"{value!r} is not base64: {error}") from error


def _time(value: str) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except ValueError as error:
        raise WireError(f"{value!r} is not a time: {error}") from error
