"""The rows that go with a range of keys: the items that delete them, one by one."""
# ruff: noqa: S608 every name is quoted

from collections.abc import Iterator, Mapping, Sequence

from connectors.agent.applying import cause_of_strangers, strangers_deleted
from connectors.agent.images import null_faults
from connectors.postgres.apply.rows import RowWriter
from connectors.postgres.log import local_writes
from connectors.postgres.sql import Session, name, texts
from streaming.core.model.table import ColumnType
from streaming.core.records.record import Item, ItemType, RangeItem
from streaming.core.tracking.ranges import KeyRange, key_order


def items_of(
    session: Session, writers: Mapping[str, RowWriter], sent: Sequence[Item | RangeItem]
) -> list[Item]:
    """The items of a batch, with a delete of each stranger in the place of each range.

    What a range leaves to this database is no stranger, and is not written.
    """
    items = list[Item]()
    for place, item in enumerate(sent):
        if isinstance(item, RangeItem):
            inside = sent[place + 1 : place + 1 + item.count]
            if item.table in writers:
                items += _deletes(session, writers[item.table], item, inside)
        elif item.type is not ItemType.KEPT:
            items.append(item)
    return items


def _deletes(
    session: Session, writer: RowWriter, keys: RangeItem, sent: Sequence[Item | RangeItem]
) -> list[Item]:
    if not keys.deletes:
        return []
    kept = {item.key for item in sent if isinstance(item, Item)}
    there = _keys_in(session, writer, KeyRange(keys.table, keys.after, keys.to))
    strangers = [key for key in there if key not in kept]
    is_captured = not keys.hidden or keys.table not in local_writes.read(session)
    cause = cause_of_strangers(keys, len(strangers), is_captured=is_captured)
    return strangers_deleted(keys, strangers, cause)


def _keys_in(session: Session, writer: RowWriter, keys: KeyRange) -> Iterator[str]:
    """The keys of the rows in the range, as the wire has them.

    The server gives those between its ends, and the order of the hub decides.
    """
    order = key_order(writer.table)
    where, values = _bounds(writer, keys)
    columns = ", ".join(f"t.{name(column)}" for column in writer.table.key)
    query = f"SELECT {columns} FROM {writer.server.sql} t WHERE {where}"
    for row in texts(session, query, values):
        key = writer.key_image(row)
        if not null_faults(key) and keys.holds(key, order):
            yield key


def _bounds(writer: RowWriter, keys: KeyRange) -> tuple[str, list[str | None]]:
    """A condition on the rows of the range: numbers by value, text by its bytes."""
    columns = ", ".join(
        _ordered(writer, column, f"t.{name(column)}") for column in writer.table.key
    )
    found, values = ["true"], list[str | None]()
    for sign, key in ((">", keys.after), ("<=", keys.to)):
        if key is not None:
            given = writer.key(key)
            marks = ", ".join(_bound(writer, column) for column in writer.table.key)
            found.append(f"({columns}) {sign} ({marks})")
            values += [given[column] for column in writer.table.key]
    return " AND ".join(found), values


def _bound(writer: RowWriter, column: str) -> str:
    """An end of the range as the column is compared."""
    if writer.table.columns[column] is ColumnType.TEXT:
        return 'CAST(%s AS text) COLLATE "C"'
    return f"CAST(CAST(%s AS text) AS {writer.server.columns[column].cast})"


def _ordered(writer: RowWriter, column: str, value: str) -> str:
    """A value as the wire compares it; what is carried as text compares as its text."""
    if writer.table.columns[column] is ColumnType.TEXT:
        return f'CAST({value} AS text) COLLATE "C"'
    return value
