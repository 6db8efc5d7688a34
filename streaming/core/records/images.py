"""Key and images of a change in canonical text, or what is wrong with them."""

import json
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import NamedTuple

from streaming.core.model.change import Change, Op, RowKey
from streaming.core.model.table import Table, not_configured
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.model.values import EXPECTED, canonical_text, is_utf8, json_text
from streaming.core.records.members import (
    DuplicateMembers,
    Fields,
    RecordFault,
    got,
    is_text,
    parse,
    shown,
)
from streaming.core.records.record import Reason


class CanonicalImages(NamedTuple):
    """Key and images of a change in canonical text; the key of a truncate is ALL_KEYS."""

    key: str
    before: str | None
    after: str | None
    partial: bool


_Members = dict[str, str]
"""Column -> the canonical text of its value."""


def images_of(fields: Fields, tables: Mapping[str, Table]) -> CanonicalImages | RecordFault:
    """Key and images of a change whose form is good.

    A key column that `after` lacks is filled in from the key; the columns stand in schema order.
    """
    name, op, key = fields["table"], fields["op"], fields.get("key")
    table = tables.get(name) if is_text(name) else None
    if table is None:
        return RecordFault(Reason.TABLE, _no_table(name))
    after = _image(fields, "after", table)
    if isinstance(after, RecordFault):
        return after
    before = _image(fields, "before", table)
    if isinstance(before, RecordFault):
        return before
    if op == Op.TRUNCATE:
        if key is not None and key != {}:
            return RecordFault(Reason.KEY, f"a truncate has no key: got {got(key)}")
        return CanonicalImages(ALL_KEYS, _object_text(before, table), None, partial=False)
    values = _key(key, table)
    if isinstance(values, RecordFault):
        return values
    if after is not None:
        other = [n for n in table.key if after.get(n, values[n]) != values[n]]
        if other:
            return RecordFault(
                Reason.KEY,
                f"column {other[0]} of table {table.name}: after has {after[other[0]]}, key has"
                f" {values[other[0]]}",
            )
        after = {**after, **values}
    return CanonicalImages(
        _key_text(values),
        _object_text(before, table),
        _object_text(after, table),
        partial=after is not None and len(after) < len(table.columns),
    )


def row_of(change: Change, tables: Mapping[str, Table]) -> RowKey | None:
    """The row of a change that may be invalid, its key in canonical text; None: it is not known.

    Of a truncate it is the table as a whole.
    """
    if change.op.is_of_table:
        return (change.table, ALL_KEYS) if change.table in tables else None
    return row_named(change.table, change.key, tables)


def row_named(name: str, key_text: str, tables: Mapping[str, Table]) -> RowKey | None:
    """The row of this table and key, the key in canonical text; None: there cannot be one."""
    table, key = tables.get(name), parse(key_text.encode())
    if table is None or isinstance(key, RecordFault):
        return None
    values = _key(key, table)
    return None if isinstance(values, RecordFault) else (table.name, _key_text(values))


def _key_text(values: _Members) -> str:
    return "{" + ",".join(f"{encode_basestring(n)}:{text}" for n, text in values.items()) + "}"


def _no_table(name: object) -> str:
    if not isinstance(name, str):
        return f"table {got(name)} is not in the configuration"
    return not_configured(shown(json.dumps(name, ensure_ascii=not is_utf8(name))[1:-1]))


def _image(fields: Fields, name: str, table: Table) -> _Members | RecordFault | None:
    image = fields.get(name)
    if image is None:
        return None
    found: _Members = {}
    for column, value in image.items():
        kind = table.columns.get(column)
        if kind is None:
            continue
        text = "null" if value is None and column not in table.key else canonical_text(value, kind)
        if text is None:
            return _misfit(Reason.TABLE, table, column, value)
        found[column] = text
    if isinstance(image, DuplicateMembers):
        return RecordFault(Reason.TABLE, f"a column appears twice in {name} of table {table.name}")
    unknown = [column for column in image if column not in table.columns]
    if unknown and (bytes_ := _bytes_left_out(image[unknown[0]])):
        return _too_large(Reason.TABLE, f"a row of table {table.name}", bytes_)
    if unknown:
        names = shown(", ".join(map(json.dumps, unknown)))
        return RecordFault(
            Reason.COLUMN,
            f"unknown columns in {name} of table {table.name}: {names}; add them to its columns",
        )
    return found


def _key(key: object, table: Table) -> _Members | RecordFault:
    if not isinstance(key, dict):
        return _at_key(table, f"key is not an object: got {got(key)}")
    if isinstance(key, DuplicateMembers) or tuple(key) != table.key:
        names = ", ".join(map(json_text, table.key))
        return _at_key(table, f"the columns of its key must be {names}, got {got(key)}")
    found: _Members = {}
    for column, value in key.items():
        text = None if value is None else canonical_text(value, table.columns[column])
        if text is None:
            return _misfit(Reason.KEY, table, column, value)
        found[column] = text
    return found


def _at_key(table: Table, text: str) -> RecordFault:
    return RecordFault(Reason.KEY, f"table {table.name}: {text}")


def _misfit(reason: Reason, table: Table, column: str, value: object) -> RecordFault:
    wanted = EXPECTED[table.columns[column]]
    what = "" if reason is Reason.TABLE else "the key's "
    what += f"column {column} of table {table.name}"
    if bytes_ := _bytes_left_out(value):
        return _too_large(reason, what, bytes_)
    return RecordFault(reason, f"{what}: expected {wanted}, got {got(value)}")


def _bytes_left_out(value: object) -> str | None:
    """How many bytes a database left out, because no record may have so many; docs/wire.md."""
    count = value.get("bytes") if isinstance(value, dict) and len(value) == 1 else None
    return count if isinstance(count, str) and count.isascii() and count.isdigit() else None


def _too_large(reason: Reason, what: str, bytes_: str) -> RecordFault:
    text = f"{what}: {shown(bytes_)} bytes are more than a record may have (limits.record_bytes)"
    return RecordFault(reason, text)


def _object_text(members: _Members | None, table: Table) -> str | None:
    if members is None:
        return None
    texts = (f"{encode_basestring(n)}:{members[n]}" for n in table.columns if n in members)
    return "{" + ",".join(texts) + "}"
