"""What of a transaction is a change, by the tables that are configured."""

from connectors.postgres.log.captured import TableCapture
from connectors.postgres.log.pgoutput import Relation
from connectors.postgres.log.transactions import (
    LogTransaction,
    Row,
    RowWrite,
    TableTruncate,
    Whose,
)
from connectors.postgres.names import MAX_BYTES, server_name
from streaming.core.model.change import Op
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.truncation import ALL_KEYS

ITEM = Table("item", ("id",), {"id": ColumnType.INT32, "name": ColumnType.TEXT})
RELATION = Relation(9, "public", "item", "f", ())
CAPTURE = TableCapture({9: ITEM}, record_bytes=2_000)


def captured(*writes: RowWrite | TableTruncate) -> list[tuple[object, ...]]:
    """Op, key, row before and row after of each change."""
    found = CAPTURE(LogTransaction(1, 2, 1, Whose.LOCAL, writes))
    return [
        (one.op, one.key.text, one.old and one.old.known, one.new and one.new.text) for one in found
    ]


def write(old: Row | None, new: Row | None, *, is_whole: bool = True) -> RowWrite:
    """A write of `item`."""
    return RowWrite(RELATION, old, new, is_whole)


def test_each_write_is_a_change_and_a_key_change_two() -> None:
    """Columns that are not configured stay at home."""
    one, other = {"id": "1", "name": "a", "x": "y"}, {"id": "2", "name": None, "x": "y"}

    assert captured(
        write(None, one), write(one, {**one, "name": "b"}), write(one, other), write(other, None)
    ) == [
        (Op.INSERT, '{"id":1}', None, '{"id":1,"name":"a"}'),
        (Op.UPDATE, '{"id":1}', '{"id":1,"name":"a"}', '{"id":1,"name":"b"}'),
        (Op.DELETE, '{"id":1}', '{"id":1,"name":"a"}', None),
        (Op.INSERT, '{"id":2}', None, '{"id":2,"name":null}'),
        (Op.DELETE, '{"id":2}', '{"id":2,"name":null}', None),
    ]


def test_a_row_of_which_only_the_key_is_logged_has_no_image_before() -> None:
    """The replica identity is the key: what was there is unknown, not null."""
    changes = captured(write({"id": "1"}, {"id": "1", "name": "b"}, is_whole=False))

    assert changes == [(Op.UPDATE, '{"id":1}', None, '{"id":1,"name":"b"}')]


def test_a_truncate_is_one_change_of_all_keys() -> None:
    """Whatever rows there were."""
    assert captured(TableTruncate(RELATION)) == [(Op.TRUNCATE, ALL_KEYS, None, None)]


def test_another_table_is_not_captured() -> None:
    """A publication may have more tables than the configuration."""
    other = Relation(10, "public", "item", "f", ())

    assert captured(RowWrite(other, None, {"id": "1"}), TableTruncate(other)) == []


def test_a_row_that_fits_no_record_is_told_by_its_size() -> None:
    """The hub quarantines it, and the row before is left empty."""
    large = {"id": "1", "name": "x" * 1_000}
    (change,) = CAPTURE(LogTransaction(1, 2, 1, Whose.LOCAL, (write(large, large),)))

    assert change.new is not None
    assert change.old is not None
    assert change.new.text == '{"whole row":{"bytes":"1018"}}'
    assert change.new.faults == (
        "whole row: 1018 bytes are more than a record may have (limits.record_bytes)",
    )
    assert change.old.known == "{}"


def test_two_databases_of_a_server_never_share_a_name() -> None:
    """Slots and origins are of the whole server."""
    assert server_name("shop", "oslo") == "slackwater__shop__oslo"
    odd = [
        *(("a_b", "c"), ("a", "b_c"), ("a_", "c"), ("a", "_c")),
        ("Shop", "oslo"),
        ("shop-1", "oslo"),
        ("shop_1", "oslo-"),
        ("x" * 60, "a"),
        ("x" * 60, "b"),
    ]
    names = [server_name(*one) for one in odd]
    assert len(set(names)) == len(odd)
    assert all(len(name) <= MAX_BYTES and name.isascii() and name == name.lower() for name in names)
