"""Captured images and keys: their canonical text, and the values that have none.

A value that means none of its column's type stands on the wire as an object of its storage class,
{"text": "abc"}, which is a value of no type: the hub quarantines the change with it. Text that
is no valid Unicode is {"text_bytes": base64}.
"""

import base64
import math
from typing import Any

from connectors import wire
from connectors.agent.images import WireImage, too_large
from connectors.sqlite.values.columns import FRACTION_BITS, STORED_AS
from connectors.sqlite.values.spellings import Stored, spelled
from connectors.sqlite.values.text import stored_bytes
from streaming.core.model.table import ColumnType
from streaming.core.model.values import Json, is_utf8, json_text, to_json

CARRIED_BY = {
    "text": ColumnType.TEXT,
    "integer": ColumnType.INT64,
    "real": ColumnType.FLOAT64,
    "blob": ColumnType.BYTES,
}
"""The storage class of a value -> the type that carries every one of it."""

SHOWN_CHARS = 60
"""No more of a value is shown in a message."""


def wire_image(captured: str) -> WireImage:
    """What the wire has of a captured image or key."""
    if "\\" not in captured and captured.find("{", 1) < 0 and is_utf8(captured):
        return WireImage(captured, captured)  # plain values, each in the wire's form
    values, faults = wire.loads(captured), list[str]()
    for name, value in values.items():
        if isinstance(value, str) and not is_utf8(value):
            values[name] = _invalid(value)
            faults.append(_invalid_fault(name, stored_bytes(value)))
        elif isinstance(value, dict):
            values[name] = plain_json(value)
            if isinstance(values[name], dict):
                faults.append(_fault(name, value))
    text = json_text(values)
    if not faults:
        return WireImage(text, text)
    known = {name: value for name, value in values.items() if not isinstance(value, dict)}
    return WireImage(text, json_text(known), tuple(faults))


def plain_json(value: dict[str, Any]) -> Json | dict[str, Json]:
    """The JSON of a captured value; an object, if it has none of its column's type."""
    if "x" in value:
        return to_json(bytes.fromhex(value["x"]), ColumnType.BYTES)
    if "r" in value:
        return _float(value["r"])
    if "text_bytes" in value:
        return _as_is(value)
    if "as" not in value:
        return value
    kind = ColumnType(value["as"])
    found = spelled(_stored(value), kind)
    is_one = found is not None and not (value.get("exact") and found != value.get("text"))
    return found if is_one else _as_is(value)


def _float(parts: str) -> float:
    if parts in ("inf", "-inf"):
        return float(parts)
    exponent, whole, fraction = (int(part) for part in parts.split(":"))
    return math.ldexp((whole << FRACTION_BITS) + fraction, -exponent - FRACTION_BITS)


def _stored(value: dict[str, str]) -> Stored:
    if "integer" in value:
        return int(value["integer"])
    if "real" in value:
        return _float(value["real"])
    return bytes.fromhex(value["blob"]) if "blob" in value else value["text"]


def _as_is(value: dict[str, str]) -> dict[str, Json]:
    if "text_bytes" in value:
        return {"text_bytes": to_json(bytes.fromhex(value["text_bytes"]), ColumnType.BYTES)}
    stored = _stored(value)
    match stored:
        case bytes():
            return {"blob": to_json(stored, ColumnType.BYTES)}
        case str():
            return {"text": stored} if is_utf8(stored) else _invalid(stored)
        case float():
            return {"real": repr(stored)}
        case _:
            return {"integer": str(stored)}


def _invalid(text: str) -> dict[str, Json]:
    """Text that is no UTF-8, which no JSON has: its bytes."""
    return {"text_bytes": to_json(stored_bytes(text), ColumnType.BYTES)}


def _invalid_fault(name: str, stored: bytes) -> str:
    shown = stored.hex()
    shown = shown if len(shown) <= SHOWN_CHARS else f"{shown[:SHOWN_CHARS]}..."
    return f"{name}: the text of the bytes x'{shown}' is no valid Unicode: write text that is"


def _fault(name: str, value: dict[str, str]) -> str:
    """Why a value cannot be carried, and what to do."""
    if "bytes" in value:
        return too_large(name, value["bytes"])
    ((storage, shown),) = _as_is(value).items()
    if storage == "text_bytes":
        return _invalid_fault(name, base64.b64decode(str(shown)))
    kind = ColumnType(value["as"])
    also = "" if CARRIED_BY[storage] is kind else f", or configure it as {CARRIED_BY[storage]}"
    text = str(shown)
    text = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."
    form = f"{STORED_AS[kind]}{', in its canonical form' if value.get('exact') else ''}"
    return f"{name}: the {storage} {text!r} is no {kind}: write {form}{also}"
