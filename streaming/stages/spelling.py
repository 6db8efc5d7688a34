"""Canonicalize well-formed changes in another spelling, with a JSON library in C.

Spaces, another order of members, needless escapes and an explicit null are other spellings of the
same change. Records that the library would change otherwise are left to core
(core/records/check.py): duplicate members, numbers that it prints differently, unknown members.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from streaming.core.model.change import Op
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.kinds import KINDS, FieldPresence
from streaming.core.records.record import RecordKind

_CHANGE, _TRUNCATE = RecordKind.CHANGE.value, Op.TRUNCATE.value
_FIELDS = KINDS[RecordKind.CHANGE].fields
_MEMBERS = ("v", "kind", "session", *(field.name for field in _FIELDS))
_KNOWN = frozenset(_MEMBERS)
_REQUIRED = _KNOWN - {field.name for field in _FIELDS if field.need is FieldPresence.OPTIONAL}
"""The members that are written; the others are not where they are null."""
_NUMBERS = (ColumnType.INT32, ColumnType.FLOAT64)
_NUMBER = re.compile(rb"(?<=[:,\[\s])-?[0-9][^,\]}\s]*")

Columns = tuple[list[str], bool]
"""The columns of a table in their order, and whether some are JSON numbers."""


def canonicalized(values: Sequence[bytes], tables: Mapping[str, Table]) -> Iterator[bytes | None]:
    """Yield the canonical text of each record, valid or not; None: it is left to core."""
    known = {
        name: (list(table.columns), any(kind in _NUMBERS for kind in table.columns.values()))
        for name, table in tables.items()
    }
    return (_canonicalized(value, known) for value in values)


def _canonicalized(value: bytes, tables: Mapping[str, Columns]) -> bytes | None:
    try:
        fields = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    if type(fields) is not dict or fields.get("kind") != _CHANGE:
        return None
    name = fields.get("table")
    table = tables.get(name) if type(name) is str else None
    if table is None or fields.get("op") == _TRUNCATE or not fields.keys() <= _KNOWN:
        return None
    order = _order(tuple(fields))
    if order is None:
        return None
    columns, has_numbers = table
    for image in ("before", "after"):
        members = fields.get(image)
        if type(members) is dict and [*members] != columns:
            ordered = {column: members[column] for column in columns if column in members}
            if len(ordered) < len(members):
                return None
            fields[image] = ordered
    record = {member: fields[member] for member in order}
    text = whole = orjson.dumps(record)
    if None in record.values():
        text = orjson.dumps({m: v for m, v in record.items() if v is not None or m in _REQUIRED})
    if _quotes(value) != _quotes(whole):  # a duplicate member is lost with its quotes
        return None
    return text if not has_numbers or _same_numbers(value, whole, fields) else None


@lru_cache(maxsize=1_000)
def _order(members: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the canonical order of known members; None: a required one lacks."""
    if not frozenset(members) >= _REQUIRED:
        return None
    return tuple(member for member in _MEMBERS if member in members)


def _quotes(text: bytes) -> int:
    """Count the quotes that delimit strings in this JSON text."""
    if b"\\" not in text:
        return text.count(b'"')
    bare = text.replace(b"\\\\", b"")
    return bare.count(b'"') - bare.count(b'\\"')


def _same_numbers(value: bytes, text: bytes, fields: Mapping[str, Any]) -> bool:
    """Return whether the library printed every number of a column as it was written.

    Printing is idempotent, so equal multisets of numbers mean equal numbers. Integers of 64 bits
    are printed as they were, except -0.
    """
    if b"-0" not in value and not any(map(_has_float, fields.values())):
        return True
    return sorted(_NUMBER.findall(value)) == sorted(_NUMBER.findall(text))


def _has_float(member: object) -> bool:
    return type(member) is dict and float in map(type, member.values())
