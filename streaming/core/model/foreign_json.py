"""JSON that somebody else wrote: read within bounds, so that no text ends who reads it."""

import json
import re
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 100
"""How deep objects and arrays may stand in each other; the wire itself needs four."""

_NESTING = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{\]}]', re.DOTALL)
"""A text, which may lack its end, or what opens or closes an object or array."""


def loads(value: bytes | str, decode: Callable[[str], Any] = json.loads) -> Any:  # noqa: ANN401
    """The value of a JSON text in UTF-8; ValueError if it is none, or nested deeper than MAX_DEPTH.

    `decode`: reads a text that is not too deep.
    """
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
