"""The spellings of a decimal, a time and a float that are carried, and their one canonical form.

SQLite lets any value into any column. A value that means one of its column's type is carried in
the type's canonical form, however it is written; the row keeps it as it was written. A value that
means none has no canonical form.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from math import isinf

from streaming.core.model.far_time import far_time
from streaming.core.model.table import ColumnType
from streaming.core.model.values import Json, to_json

Stored = int | float | str | bytes | None
"""A value as SQLite holds it."""

EXPONENT_MAX = 1_000
"""The largest power of ten of a number in another spelling: 1e1000000 would be a megabyte."""

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:([T ])(\d\d:\d\d)(:\d\d)?(?:\.(\d{1,9}))?(Z|z|[+-]\d\d:\d\d)?)?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class TimeForm:
    """How a column writes times, if they have no more digits than it; without a zone it is UTC."""

    separator: str = "T"  # empty: the date alone
    has_seconds: bool = True
    digits: int = 6
    zone: str = "Z"

    def text(self, moment: datetime) -> str:
        """A time in this form; one that has more digits gets them."""
        utc = moment.astimezone(UTC).replace(tzinfo=None)
        if self == CANONICAL_TIME:
            return utc.isoformat(timespec="microseconds") + "Z"
        fraction = f"{utc.microsecond:06d}".rstrip("0").ljust(self.digits, "0")
        if not self.separator and utc.time() == utc.time().min:
            return utc.date().isoformat()
        is_whole = not self.has_seconds and not utc.second and not utc.microsecond
        text = utc.isoformat(self.separator or " ", "minutes" if is_whole else "seconds")
        return f"{text}{'.' if fraction else ''}{fraction}{self.zone}"


CANONICAL_TIME = TimeForm()
"""The form on the wire."""


def spelled(value: Stored, kind: ColumnType) -> Json:
    """The canonical JSON of a value that means one of this type; None if it means none."""
    match kind, value:
        case ColumnType.DECIMAL, int():
            return str(value)
        case ColumnType.DECIMAL, float() if isinf(value):
            return to_json(Decimal(value), kind)
        case ColumnType.DECIMAL, float():
            return decimal_text(repr(value).removesuffix(".0"))
        case ColumnType.DECIMAL, str():
            return decimal_text(value)
        case ColumnType.TIMESTAMP, str():
            return timestamp_text(value)
        case ColumnType.FLOAT64, int() if -(2**53) <= value <= 2**53:
            return float(value)
        case _:
            return None


def decimal_text(text: str) -> str | None:
    """The canonical text of a decimal; None: the text is no number, or one of too many digits."""
    stripped = text.strip(" \t\r\n")
    found = _NUMBER.fullmatch(stripped)
    if found is None:
        return stripped if stripped in _NOT_FINITE else None
    number = Decimal(found[0])
    exponent = number.as_tuple().exponent
    bounded = isinstance(exponent, int) and abs(exponent) <= EXPONENT_MAX
    return format(number, "f") if bounded else None


def timestamp_text(text: str) -> str | None:
    """The canonical text of a time; None: the text is none, or one of more than microseconds.

    A time that no datetime has is carried in its canonical text only.
    """
    stripped = text.strip(" ")
    found = _TIME.fullmatch(stripped)
    if found is None or stripped.startswith("0000"):
        far = far_time(stripped)
        return None if far is None else str(far)
    date, _, minute, second, fraction, zone = found.groups(default="")
    if fraction[6:].strip("0") or (fraction and not second):
        return None
    whole = f"{date}T{minute or '00:00'}{second or ':00'}.{fraction[:6]:0<6}"
    try:
        moment = datetime.fromisoformat(whole + (zone.upper() or "Z"))
        return str(to_json(moment, ColumnType.TIMESTAMP))
    except (ValueError, OverflowError):
        return None


def time_form(text: str) -> TimeForm | None:
    """The form in which a time is written; None: the text is none."""
    found = _TIME.fullmatch(text.strip(" "))
    if found is None or timestamp_text(text) is None:
        return None
    _, separator, _, second, fraction, zone = found.groups(default="")
    zone = zone if zone in ("", "Z") else "+00:00"
    return TimeForm(separator, bool(second), len(fraction), zone)
