"""Changes that are well-formed but written otherwise are rewritten canonically, by a library in C.

Blanks, another order of members, needless escapes and an explicit null are other spellings of the
same change. Whatever else the library would change is left to core (core/intake/check.py): members
that stand twice, numbers that it prints otherwise, unknown members.
"""

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

import orjson

from streaming.core.model.change import Op
from streaming.core.model.kinds import KINDS, Need
from streaming.core.model.record import RecordKind
from streaming.core.model.table import Table

_FIELDS = KINDS[RecordKind.CHANGE].fields
_MEMBERS = ("v", "kind", "session", *(field.name for field in _FIELDS))
_LEFT_OUT = frozenset(field.name for field in _FIELDS if field.need is Need.OPTIONAL)
"""The members that are not written where they are null."""
_NUMBER = re.compile(rb"(?<=[:,\[\s])-?[0-9][^,\]}\s]*")


def rewritten(value: bytes, tables: Mapping[str, Table]) -> bytes | None:
    """The canonical text of a change, good or bad, that says the same; None: core must check it."""
    try:
        fields = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    if type(fields) is not dict or fields.get("kind") != RecordKind.CHANGE:
        return None
    name = fields.get("table")
    table = tables.get(name) if type(name) is str else None
    if table is None or fields.get("op") == Op.TRUNCATE or not fields.keys() <= _KNOWN:
        return None
    for image in ("before", "after"):
        members = fields.get(image)
        if type(members) is dict:
            fields[image] = {
                column: members[column] for column in table.columns if column in members
            }
            if len(fields[image]) < len(members):
                return None
    record = {
        member: fields.get(member)
        for member in _MEMBERS
        if member not in _LEFT_OUT or fields.get(member) is not None
    }
    text = orjson.dumps(record)
    whole = text if record.keys() == fields.keys() else orjson.dumps(fields)
    return text if _says_the_same(value, whole, fields) else None


_KNOWN = frozenset(_MEMBERS)


def _says_the_same(value: bytes, text: bytes, fields: Mapping[str, Any]) -> bool:
    """Return whether nothing was lost or changed: no member that stands twice, no number.

    A lost member takes its quotes along. The library prints a number that it has changed in a
    form that it would print again, so equal multisets of numbers are equal numbers.
    """
    if _quotes(value) != _quotes(text):
        return False
    if b"-0" in value or _has_float(fields):
        return sorted(_NUMBER.findall(value)) == sorted(_NUMBER.findall(text))
    return True


def _quotes(text: bytes) -> int:
    """How many quotes begin or end a string in this JSON text."""
    if b"\\" not in text:
        return text.count(b'"')
    bare = text.replace(b"\\\\", b"")
    return bare.count(b'"') - bare.count(b'\\"')


def _has_float(fields: Mapping[str, Any]) -> bool:
    objects = (one.values() for one in fields.values() if type(one) is dict)
    return float in map(type, chain(fields.values(), *objects))
