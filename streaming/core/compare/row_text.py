"""The text of a row by which it is compared: its wire image, with equal values in one spelling.

Databases hold some values in another spelling than the wire: a numeric(12,2) has 1.50 of 1.5, a
column of floats has no negative zero. Such values are equal. Keys are compared by their text.
"""

import re
import struct
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring

from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text

Image = Mapping[str, object]
"""A row's values by column, as the JSON of the wire has them; one that is absent is not known."""

NAN = "7ff8000000000000"
ZERO = "0000000000000000"
"""The bits of a float64 in hexadecimal digits: of every NaN, and of both zeros."""

NAMED = ("NaN", "Infinity", "-Infinity")

_BITS = struct.Struct(">d")


def value_text(value: object, kind: ColumnType, *, is_key: bool) -> str:
    """The text by which a column's value is compared; {"text": ...}, of no type, has its own."""
    return _writer(kind, is_key=is_key)(value)


def row_text(table: Table) -> Callable[[Image], str]:
    """What gives the text of a row of the table; a column that is not known is left out."""
    columns = [
        (name, f"{json_text(name)}:", _writer(kind, is_key=name in table.key))
        for name, kind in table.columns.items()
    ]

    def text(image: Image) -> str:
        found = [label + write(image[name]) for name, label, write in columns if name in image]
        return f"{{{','.join(found)}}}"

    return text


def quick_text(table: Table) -> Callable[[bytes], bytes | None]:
    """What gives the text of a row by its canonical image without parsing it; None: parse it.

    A quote inside a value is escaped, so what looks like a member of the image is one.
    """
    others = {name: kind for name, kind in table.columns.items() if name not in table.key}
    if ColumnType.FLOAT64 in others.values():
        return lambda _: None
    decimals = [json_text(name) for name, kind in others.items() if kind is ColumnType.DECIMAL]
    if not decimals:
        return lambda image: image
    names = "|".join(map(re.escape, decimals))
    zeros = re.compile(rf'((?:{names}):"-?[0-9]+)(?:\.0*|(\.[0-9]*[1-9])0+)"'.encode())

    def text(image: bytes) -> bytes | None:
        found = zeros.sub(rb'\1\2"', image)
        return None if b':"-0"' in found else found

    return text


def _writer(kind: ColumnType, *, is_key: bool) -> Callable[[object], str]:
    if is_key:
        return _as_it_is
    return {ColumnType.DECIMAL: _decimal, ColumnType.FLOAT64: _float}.get(kind, _as_it_is)


def _as_it_is(value: object) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    return "null" if value is None else json_text(value)


def _decimal(value: object) -> str:
    if not isinstance(value, str):
        return _as_it_is(value)
    if "." in value:
        value = value.rstrip("0").rstrip(".")
    return '"0"' if value == "-0" else f'"{value}"'


def _float(value: object) -> str:
    if not isinstance(value, float | int) and value not in NAMED:
        return _as_it_is(value)
    number = float(value)
    if not number:
        return f'"{ZERO}"'
    return f'"{_BITS.pack(number).hex() if number == number else NAN}"'
