"""A scan sends every row of its ranges, deletes strangers, and realigns as one entry."""

import json
from base64 import b64encode
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.errors import WireError
from streaming.core.model.table import ColumnType, Table
from streaming.core.tracking.ranges import (
    KeyRange,
    RangeRealign,
    key_order,
    listed_order,
    unapplied,
    with_range,
)
from tests.harness.examples import examples
from tests.harness.far_times import BEFORE, FAR
from tests.reference.pages import realigned_epoch, scanned_page, scanned_pages

T = Table("t", ("k",), {"k": ColumnType.INT64})
ORDER = key_order(T)
numbers = st.sets(st.integers(-20, 120))
sizes = st.integers(1, 9)


def key(number: int) -> str:
    """The key of row `number`: text order is not the order of its values."""
    return f'{{"k":"{number}"}}'


def keys(found: set[int]) -> list[str]:
    """The keys of these rows in order."""
    return [key(number) for number in sorted(found)]


@pytest.mark.parametrize(
    ("kind", "in_order"),
    [
        (ColumnType.INT64, ["-20", "-3", "7", "10"]),
        (ColumnType.INT32, [-20, -3, 7, 10]),
        (ColumnType.DECIMAL, ["-Infinity", "-20.5", "-3", "7", "10", "Infinity", "NaN"]),
        (ColumnType.FLOAT64, ["-Infinity", -20.5, 7, 10.0, "Infinity", "NaN"]),
        (ColumnType.TEXT, ["", "Z", "a", "ab", "\u00e9", "\uffff", "\U0001f600"]),
        (ColumnType.BYTES, [b64encode(b).decode() for b in (b"", b"\x00", b"a", b"\xff")]),
        (ColumnType.BOOL, [False, True]),
        (
            ColumnType.TIMESTAMP,
            [
                *FAR[:BEFORE],
                "1969-12-31T23:59:59.999999Z",
                "1970-01-01T00:00:00.000000Z",
                *FAR[BEFORE:],
            ],
        ),
    ],
)
def test_keys_compare_by_value(kind: ColumnType, in_order: list[object]) -> None:
    """Text order would put 10 before 7, and UTF-16 an emoji before the end of the plane."""
    order = key_order(Table("t", ("k",), {"k": kind}))
    texts = [json.dumps({"k": value}) for value in (None, *in_order)]

    assert all(order(one) < order(other) for one, other in pairwise(texts))


def test_keys_compare_column_by_column_in_key_order() -> None:
    """Whatever the order of the columns in the schema."""
    columns = {"b": ColumnType.INT32, "a": ColumnType.TEXT, "v": ColumnType.INT32}
    order = key_order(Table("t", ("a", "b"), columns))
    texts = ['{"a":"x","b":9}', '{"a":"x","b":10}', '{"a":"y","b":1}']

    assert all(order(one) < order(other) for one, other in pairwise(texts))


@given(st.decimals(allow_nan=False, allow_infinity=False, places=2))
def test_a_decimal_is_the_same_key_however_many_zeros_it_has(value: Decimal) -> None:
    """Both stand in the same range."""
    order = key_order(Table("t", ("k",), {"k": ColumnType.DECIMAL}))

    assert order(f'{{"k":"{value:f}"}}') == order(f'{{"k":"{value:f}0"}}')


@pytest.mark.parametrize("text", ["", "7", '{"k":7}', '{"j":"7"}', '{"k":"x"}', "[]"])
def test_what_is_no_key_of_the_table_is_named(text: str) -> None:
    """A range over it would compare nothing."""
    with pytest.raises(WireError, match="not a key of table t"):
        ORDER(text)


def test_in_a_list_a_key_of_other_types_is_behind_the_rest() -> None:
    """A column may have had another type once, and its rows are still listed."""
    table = Table("t", ("k",), {"k": ColumnType.INT64})
    listed = ['{"k":"9"}', '{"k":"10"}', '{"k":"no number"}', '{"old":"1"}']

    shuffled = listed[::-1]
    assert sorted(shuffled, key=listed_order(table)) == listed


@examples()
@given(numbers, numbers, sizes)
def test_a_scan_makes_the_consumer_equal(hub: set[int], consumer: set[int], size: int) -> None:
    """Every row of the hub is sent once, every stranger deleted, whatever the consumer had."""
    rows = set(keys(consumer))

    for page in scanned_pages("t", keys(hub), ORDER, size):
        rows = {one for one in rows if not page.range.holds(one, ORDER)} | set(page.keys)
        assert len(page.keys) <= size

    assert rows == set(keys(hub))


@examples()
@given(st.lists(numbers, min_size=1, max_size=4), sizes)
def test_a_scan_of_a_table_that_changes_leaves_no_row_between_ranges(
    states: list[set[int]], size: int
) -> None:
    """Each key is in exactly one range, also one that came or went between two pages."""
    ranges, after, step = list[KeyRange](), None, 0
    while True:
        hub = keys(states[min(step, len(states) - 1)])
        page = scanned_page("t", hub, ORDER, after, size)
        assert list(page.keys) == [one for one in hub if page.range.holds(one, ORDER)]
        ranges.append(page.range)
        after, step = page.range.to, step + 1
        if after is None:
            break

    for number in range(-21, 122):
        assert sum(one.holds(key(number), ORDER) for one in ranges) == 1


@examples()
@given(numbers, sizes, st.integers(1, 50), st.integers(-21, 121))
def test_a_scan_is_one_realign_of_every_key(
    hub: set[int], size: int, begin: int, number: int
) -> None:
    """However many pages it has, each in a hub epoch of its own; keys without a row too."""
    realigns: tuple[RangeRealign, ...] = (RangeRealign(KeyRange("u"), 2, 1),)
    found = list(scanned_pages("t", keys(hub), ORDER, size))

    for epoch, page in enumerate(found, start=begin):
        realigns = with_range(realigns, RangeRealign(page.range, 2, epoch))

    last = begin + len(found) - 1
    assert len(realigns) == 2
    assert realigned_epoch(realigns, 2, "t", key(number), ORDER) == last
    assert realigned_epoch(realigns, 3, "t", key(number), ORDER) == 0


@examples()
@given(numbers, sizes, st.integers(0, 5), st.integers(0, 40), st.integers(-21, 121))
def test_the_joined_range_blocks_as_its_pages_did(
    hub: set[int], size: int, held: int, mre: int, number: int
) -> None:
    """A reflection is of the covers that the resync held, or of its last page; none is between."""
    found = list(scanned_pages("t", keys(hub), ORDER, size))
    single = [RangeRealign(p.range, 2, held + n) for n, p in enumerate(found, start=1)]
    joined: tuple[RangeRealign, ...] = ()
    for one in single:
        joined = with_range(joined, one)
    reflected = held if mre < held + len(found) else mre

    blocked = realigned_epoch(single, 2, "t", key(number), ORDER) > reflected

    assert (realigned_epoch(joined, 2, "t", key(number), ORDER) > reflected) == blocked


def test_a_range_behind_what_a_replica_reached_is_unapplied() -> None:
    """Nothing else says so: no log has its rows."""
    sent = [RangeRealign(KeyRange("t"), 2, 7), RangeRealign(KeyRange("u"), 2, 8)]

    assert [unapplied(sent, 2, reached) for reached in (6, 7, 8)] == [{"t", "u"}, {"u"}, set()]
    assert unapplied(sent, 3, 6) == set()


fragments = st.lists(
    st.builds(
        RangeRealign,
        st.builds(
            KeyRange,
            st.sampled_from(("t", "u")),
            st.none() | st.sampled_from((key(1), key(3))),
            st.none() | st.sampled_from((key(3), key(5))),
        ),
        st.integers(1, 2),
        st.just(0),
    ),
    max_size=8,
)


@examples()
@given(fragments, st.integers(1, 2), st.integers(0, 6))
def test_what_is_dropped_for_a_new_range_blocked_no_more(
    sent: list[RangeRealign], rid: int, number: int
) -> None:
    """Each is sent in a later hub epoch than those before it, in whatever order resyncs begin."""
    known: tuple[RangeRealign, ...] = ()

    for epoch, one in enumerate(sent, start=1):
        known = with_range(known, replace(one, hub_epoch=epoch))

    for table in ("t", "u"):
        epochs = [
            epoch
            for epoch, one in enumerate(sent, start=1)
            if (one.rid, one.range.table) == (rid, table) and one.range.holds(key(number), ORDER)
        ]
        blocks = realigned_epoch(known, rid, table, key(number), ORDER)
        assert blocks >= max(epochs, default=0)
        assert (blocks > 0) == bool(epochs)


@examples()
@given(st.lists(numbers, min_size=1, max_size=4), sizes, st.integers(0, 3))
def test_a_table_that_is_scanned_again_and_again_is_one_realign(
    scans: list[set[int]], size: int, given_up: int
) -> None:
    """Else the commit row would grow with every full copy; a scan that is given up leaves less."""
    known: tuple[RangeRealign, ...] = ()
    epoch = 0
    for hub in scans:
        for page in [*scanned_pages("t", keys(hub), ORDER, size)][:given_up]:
            epoch += 1
            known = with_range(known, RangeRealign(page.range, 2, epoch))
        for page in scanned_pages("t", keys(hub), ORDER, size):
            epoch += 1
            known = with_range(known, RangeRealign(page.range, 2, epoch))

    assert known == (RangeRealign(KeyRange("t"), 2, epoch),)


def test_ranges_of_others_are_not_joined() -> None:
    """Another replica, another table, or a gap between them."""
    first = RangeRealign(KeyRange("t", None, key(5)), 2, 7)
    others = (
        RangeRealign(KeyRange("t", key(5)), 3, 8),
        RangeRealign(KeyRange("u", key(5)), 2, 8),
        RangeRealign(KeyRange("t", key(6)), 2, 8),
    )

    for other in others:
        assert with_range((first,), other) == (first, other)
