"""The rows that go with a range or a truncate: the items that delete them, one by one."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import orjson

from connectors.agent.applying import cause_of_strangers, strangers_deleted
from connectors.agent.images import null_faults
from connectors.sqlite import sql
from connectors.sqlite.apply.rows import RowWriter
from connectors.sqlite.install.local_writes import local_writes
from connectors.sqlite.journal import uncaptured
from connectors.sqlite.schema.catalog import BINARY
from connectors.sqlite.values.columns import image_sql
from connectors.sqlite.values.image import wire_image
from connectors.sqlite.values.text import UTF_8, encoding_of
from streaming.core.model.change import Op
from streaming.core.model.table import ColumnType
from streaming.core.records.record import Item, ItemType, RangeItem
from streaming.core.tracking.ranges import KeyRange, key_order

_COMPARED_ALIKE = {ColumnType.BOOL, ColumnType.INT32, ColumnType.INT64, ColumnType.BYTES}
"""The types whose values SQLite compares as the wire does; the others have several spellings.

It compares text by the bytes that it stores, so text is one of them where these are UTF-8.
"""


def items_of(
    connection: sqlite3.Connection,
    writers: Mapping[str, RowWriter],
    sent: Sequence[Item | RangeItem],
    *,
    each_row: bool,
) -> list[Item]:
    """The items of a batch, with a delete of each stranger in the place of each range.

    `each_row`: with a delete of each row in the place of a truncate, too. What a range leaves to
    this database is no stranger, and is not written.
    """
    items = list[Item]()
    for place, item in enumerate(sent):
        if isinstance(item, Item):
            if item.type is ItemType.KEPT:
                continue
            is_split = each_row and item.is_of_table and item.table in writers
            items += _split(connection, writers[item.table], item, items) if is_split else [item]
        elif item.table in writers:
            inside = sent[place + 1 : place + 1 + item.count]
            items += _deletes(connection, writers[item.table], item, inside)
    return items


def _deletes(
    connection: sqlite3.Connection,
    writer: RowWriter,
    keys: RangeItem,
    sent: Sequence[Item | RangeItem],
) -> list[Item]:
    if not keys.deletes:
        return []
    kept = {item.key for item in sent if isinstance(item, Item)}
    there = _keys_in(connection, writer, KeyRange(keys.table, keys.after, keys.to))
    strangers = [key for key in there if key not in kept]
    is_captured = not (keys.hidden and _stays_here(connection, keys.table))
    cause = cause_of_strangers(keys, len(strangers), is_captured=is_captured)
    return strangers_deleted(keys, strangers, cause)


def _stays_here(connection: sqlite3.Connection, table: str) -> bool:
    """Return whether the table has writes that were not captured, as far as is known."""
    return table in uncaptured.listed(connection) or table in local_writes(connection)


def _split(
    connection: sqlite3.Connection, writer: RowWriter, truncate: Item, before: Iterable[Item]
) -> Iterator[Item]:
    """A delete of each row that stands at a truncate, `before` being applied."""
    there = [item.key for item in before if item.table == truncate.table]
    keys = dict.fromkeys([*_keys_in(connection, writer, KeyRange(truncate.table)), *there])
    return (replace(truncate, key=key, op=Op.DELETE) for key in keys)


def _keys_in(connection: sqlite3.Connection, writer: RowWriter, keys: KeyRange) -> Iterator[str]:
    """The keys of the rows in the range, as the wire has them; one that it cannot have is none."""
    table, order = writer.table, key_order(writer.table)
    stored = {name: writer.columns[name] for name in table.key}
    where, values = _bounds(connection, writer, keys)
    query = f"SELECT {image_sql(stored, 'x')} FROM {sql.name(table.name)} x WHERE {where}"  # noqa: S608 quoted
    for (captured,) in connection.execute(query, values).fetchall():
        key = wire_image(captured)
        if not (key.faults or null_faults(key.text)) and keys.holds(key.text, order):
            yield key.text


def _bounds(
    connection: sqlite3.Connection, writer: RowWriter, keys: KeyRange
) -> tuple[str, list[object]]:
    """A condition that all rows of the range fulfil, so that an index of the key is used."""
    table = writer.table
    is_utf8 = encoding_of(connection) == UTF_8
    alike = _COMPARED_ALIKE | ({ColumnType.TEXT} if is_utf8 else set())
    if not all(table.columns[name] in alike for name in table.key):
        return "1", []
    columns = ", ".join(f"x.{sql.name(name)} COLLATE {BINARY}" for name in table.key)
    marks = ", ".join("?" * len(table.key))
    found, values = ["1"], list[object]()
    for sign, key in ((">", keys.after), ("<=", keys.to)):
        if key is not None:
            found.append(f"({columns}) {sign} ({marks})")
            given = orjson.loads(key)
            values += [writer.columns[name].from_wire(given[name]) for name in table.key]
    return " AND ".join(found), values
