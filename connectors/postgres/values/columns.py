"""A column of a table, and a value of the wire as the column holds it.

PostgreSQL rounds a number and pads a text without a word, and the row would then differ from the
hub's: what a column cannot hold as it is has no text here, and its row is refused.
"""

import ctypes
import re
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext

from connectors.postgres.values.text import server_text
from connectors.postgres.values.types import ServerType, TypeForm
from streaming.core.model.errors import WireError
from streaming.core.model.table import ColumnType

_TIMES = {"timestamp", "timestamptz"}
_FLOAT4_DIGITS = 9
_NUMERIC_DIGITS = 150_000
_MICROSECOND_DIGITS = 6
_KEPT = {"text", "varchar", "bpchar", "json"}
"""Built-in types that keep each text as it is; bpchar's spaces are known here."""
_DATE, _TIME = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d:\d\d(?:\.\d{0,5}[1-9])?"
_SPELLED = {
    "uuid": re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII),
    "date": re.compile(_DATE, re.ASCII),
    "time": re.compile(_TIME, re.ASCII),
    "timestamp": re.compile(f"{_DATE} {_TIME}", re.ASCII),
}
"""Types -> what of their texts is surely the server's own spelling, if it is a value at all."""


@dataclass(frozen=True, slots=True)
class ServerColumn:
    """A column; `cast`: the type to which a text is cast, of a domain the one below it.

    The cast has no length or scale, which the assignment checks: a cast would cut the value off.
    `is_required`: neither null nor absent from an insert. `is_always_identity`: no UPDATE can set
    it. `is_generated`: nothing can.
    """

    name: str
    type: ServerType
    cast: str
    is_required: bool = False
    is_always_identity: bool = False
    is_generated: bool = False

    def from_wire(self, value: object, kind: ColumnType, *, is_key: bool) -> str | None:
        """The text of the wire's JSON; WireError: the column cannot hold the value as it is."""
        text = server_text(value, kind)
        if text is not None:
            held = self._held(text, is_key=is_key)
            if held != text:
                raise WireError(f"column {self.name} would hold {text!r} as {held!r}")
        return text

    def is_respelled(self, kind: ColumnType) -> bool:
        """Return whether the server may write a text of the wire in another way than it is."""
        base = self.type.base
        is_kept = base.form is TypeForm.ENUM or (base.is_built_in and base.name in _KEPT)
        return kind is ColumnType.TEXT and not is_kept

    def is_spelled(self, text: str | None) -> bool:
        """Return whether this text is surely the server's own spelling; else only it knows."""
        known = _SPELLED.get(self.type.base.name) if self.type.base.is_built_in else None
        return text is None or (known is not None and known.fullmatch(text) is not None)

    def _held(self, text: str, *, is_key: bool) -> str:
        """The text that the column makes of this one, where it may be another."""
        base = self.type.base
        match base.name:
            case "numeric" if base.scale is not None and Decimal(text).is_finite():
                return _scaled(text, base.scale, is_key=is_key)
            case "float4":
                return _float4(text)
            case "bpchar" if base.modifier >= 0:
                return text.ljust(base.modifier - 4)
            case name if name in _TIMES and 0 <= base.modifier < _MICROSECOND_DIGITS:
                return _cut(text, base.modifier)
            case _:
                return text


def _scaled(text: str, scale: int, *, is_key: bool) -> str:
    """A key is found by its text, so it must have each digit; a value may get zeros."""
    with localcontext(prec=_NUMERIC_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN):
        held = Decimal(text).quantize(Decimal(1).scaleb(-scale))
    return text if held == Decimal(text) and not is_key else format(held, "f")


def _float4(text: str) -> str:
    """The double whose text is the shortest one of the single that is nearest."""
    value = float(text)
    single = ctypes.c_float(value).value
    for digits in range(1, _FLOAT4_DIGITS + 1):
        shown = float(f"{single:.{digits}g}")
        if ctypes.c_float(shown).value == single:
            return text if shown == value else str(shown)
    return text if single != single else str(single)


def _cut(text: str, digits: int) -> str:
    """A time with so many digits of its fraction, which has six."""
    point = text.find(".")
    if point < 0:
        return text
    end = point + 1 + _MICROSECOND_DIGITS
    kept = text[point + 1 : point + 1 + digits]
    return f"{text[: point + 1]}{kept:0<6}{text[end:]}"
