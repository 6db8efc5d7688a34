"""JSON that somebody else wrote: read within bounds, so that no text ends who reads it.

Whatever the hub's check accepts (core/records/check.py) is read here without an error, unknown
members included: a record that was taken must never end those who read it again.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from streaming.core.model.values import Number, is_utf8

MAX_BYTES = 32 * 2**20
"""How large a text may be; no larger record can be sent (connectors/kafka/options.py)."""

MAX_DEPTH = 100
"""How deep objects and arrays may stand in each other; the wire itself needs four."""

MAX_DIGITS = 400
"""How long an integer may be; the largest float64 has 309 digits."""

_NESTING = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{\]}]', re.DOTALL)
"""A text, which may lack its end, or what opens or closes an object or array."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def no_json(constant: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python's parser takes for numbers."""
    raise ValueError(f"{constant} is no JSON")


def _integer(text: str) -> int | Number:
    return int(text) if len(text) <= MAX_DIGITS else Number(text)


def _float(text: str) -> float | Number:
    found = float(text)
    return found if math.isfinite(found) else Number(text)


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=no_json)


def as_written(text: str) -> Any:  # noqa: ANN401
    """The value of a text within bounds, with each half of a surrogate pair as it stands there."""
    return _DECODER.decode(text)


def _decode(text: str) -> Any:  # noqa: ANN401
    found = as_written(text)
    return _storable(found) if _SURROGATE.search(text) or not is_utf8(text) else found


def _storable(value: Any) -> Any:  # noqa: ANN401
    """The value with a question mark for each half of a surrogate pair that is on its own."""
    match value:
        case str() if not is_utf8(value):
            return value.encode(errors="replace").decode()
        case dict():
            return {_storable(name): _storable(one) for name, one in value.items()}
        case list():
            return [_storable(one) for one in value]
        case _:
            return value


def loads(value: bytes | str, decode: Callable[[str], Any] = _decode) -> Any:  # noqa: ANN401
    """The value of a JSON text in UTF-8; ValueError if it is none, too large or nested too deep.

    A number that no field may have is its text, and a text can always be stored. `decode`: reads a
    text of which size and depth are within bounds.
    """
    if len(value) > MAX_BYTES:
        raise ValueError(f"larger than {MAX_BYTES} bytes")
    text = value if isinstance(value, str) else value.decode("utf-8")
    if is_too_deep(text):
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    return decode(text)


def is_too_deep(text: str) -> bool:
    """Return whether objects and arrays of a JSON text stand in each other too deep."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for token in _NESTING.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif token[0] in ("]", "}"):
            depth -= 1
    return False
