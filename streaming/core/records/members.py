"""The members of a record as they were written, and how a message shows them."""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from streaming.core.model.foreign_json import loads, no_json
from streaming.core.model.values import Number, is_utf8, raw_text
from streaming.core.records.kinds import FieldType
from streaming.core.records.record import Reason

SHOWN_CHARS = 100
"""No more of a value is shown in a message."""

_DIGITS = re.compile(r"-?[0-9]{1,19}")


class RecordFault(NamedTuple):
    """The first rule that a record breaks, and how."""

    reason: Reason
    detail: str


Fields = Mapping[str, Any]
"""The members of a record as JSON has them, numbers as Number."""


class DuplicateMembers(dict[str, Any]):
    """An object in which a member appears twice; the last counts."""


def parse(value: bytes) -> Fields | RecordFault:
    """The members of a record; a RecordFault if it is not one JSON object in UTF-8."""
    if value.startswith(BOM_UTF8):
        return RecordFault(Reason.JSON, "the value starts with a byte order mark: leave it out")
    try:
        found = loads(value, _DECODER.decode)
    except ValueError as error:
        return RecordFault(
            Reason.JSON, f"the value is not one JSON object in UTF-8: {shown(str(error))}"
        )
    if not isinstance(found, dict):
        return RecordFault(Reason.JSON, f"the value is not one JSON object: got {got(found)}")
    return found


def _object(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    return found if len(found) == len(members) else DuplicateMembers(found)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=Number, parse_float=Number, parse_constant=no_json
)


def got(value: object) -> str:
    """A JSON value for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Number():
            return f"the number {shown(value)}"
        case str():
            return f"the string {shown(json.dumps(value, ensure_ascii=not is_utf8(value)))}"
        case dict():
            return f"the object {shown(raw_text(value))}"
        case _:
            return f"the array {shown(raw_text(value))}"


def shown(text: str) -> str:
    """The start of a text, such as can be stored."""
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."


def expected(name: str, type_: FieldType, value: object) -> RecordFault:
    """The fault of a field that is not of its type."""
    return RecordFault(Reason.KIND, f"field {name}: expected {type_}, got {got(value)}")


def number(value: object) -> int | None:
    """An integer below 2^63; None: it is none."""
    if isinstance(value, Number) and _DIGITS.fullmatch(value):
        integer = int(value)
        return integer if integer < 2**63 else None
    return None


def is_text(value: object) -> bool:
    """Return whether this is a JSON string that can be stored as UTF-8."""
    return isinstance(value, str) and not isinstance(value, Number) and is_utf8(value)
