"""The rows of a range go out behind it, and behind everything that the log sends."""

from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.reading.resync_rows import SORTED
from checkpoints.tables import CHANGELOG
from connectors.wire import item_text
from streaming.core.batch.sending import RangeRefresh, Refresh
from streaming.core.model.row import RowState
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text
from streaming.core.records.record import Item, RangeItem
from streaming.core.state.agreement_state import AgreementState, SendRange
from streaming.core.state.topology import Subscription
from streaming.core.tracking.ranges import KeyRange
from streaming.core.tracking.resync import CoveredPosition
from streaming.filters.row_predicate import RowPredicate
from streaming.stages.log import CHANGE, LOG, RANGE, REFRESH, changelog
from streaming.stages.publish import (
    ChunkLimits,
    Outgoing,
    OutgoingWithRanges,
    RangeRows,
    chunks,
    page_items,
)
from tests.harness.builders import change, csn
from tests.reference.sending import item, items_of
from tests.reference.wire import decode_update
from tests.streaming.stages.batches import HUB_EPOCH, judged, records_of

CONSUMER = 2
TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
COLUMNS = dict.fromkeys("kab", ColumnType.TEXT)
IMAGES = st.dictionaries(
    st.sampled_from("ab") | TEXTS, st.none() | st.booleans() | TEXTS, max_size=2
).map(json_text)
ROWS = st.dictionaries(
    IMAGES, st.tuples(st.integers(1, 65_535), st.integers(1, 9), IMAGES), max_size=4
)
KEPT = st.lists(IMAGES, max_size=2).map(tuple)
RANGES = st.lists(
    st.tuples(st.builds(KeyRange, TEXTS, st.none() | IMAGES, st.none() | IMAGES), ROWS, KEPT),
    max_size=3,
)
Ranges = list[tuple[KeyRange, dict[str, tuple[int, int, str]], tuple[str, ...]]]


def columns(rows: dict[str, tuple[int, int, str]]) -> pa.Table:
    """Rows as they are sorted."""
    found = [
        {"key": key, "author": rid, "hub_epoch": 3, "csn": csn(number, rid), "image": image}
        for key, (rid, number, image) in rows.items()
    ]
    return pa.Table.from_pylist(found, schema=SORTED)


def of_core(ranges: Ranges) -> list[Item | RangeItem]:
    """The items of these ranges, as core makes them."""
    entries = [
        RangeRefresh(
            CONSUMER,
            keys,
            tuple(
                (key, RowState(rid, 3, csn(number, rid), exists=True, image=image))
                for key, (rid, number, image) in rows.items()
            ),
            kept,
        )
        for keys, rows, kept in ranges
    ]
    tables = {keys.table: Table(keys.table, ("k",), COLUMNS) for keys, *_ in ranges}
    return [*chain.from_iterable(items_of(entry, tables=tables) for entry in entries)]


def encoded(ranges: Ranges) -> pa.Array:
    """The items of these ranges, as the columns make them."""
    return page_items(
        [RangeRows(keys, columns(rows), kept, columns=("a", "b")) for keys, rows, kept in ranges]
    )


@given(RANGES)
def test_columns_and_core_write_the_same_items(ranges: Ranges) -> None:
    """Each range names how many rows follow; a count that is wrong deletes what was sent."""
    expected = [item_text(one).encode() for one in of_core(ranges)]

    assert encoded(ranges).to_pylist() == expected


NUMBERED = Table("t", ("k",), {"k": ColumnType.TEXT, "n": ColumnType.INT32})


def test_a_range_of_an_archive_deletes_nothing() -> None:
    """An agent that does not know the type stops, and deletes nothing either."""
    shown, other = (RowState(1, 3, csn(n), exists=True, image=f'{{"n":{n}}}') for n in (1, 2))
    entry = RangeRefresh(CONSUMER, KeyRange("t"), (("1", shown), ("2", other)), (), is_vouched=True)

    head, *behind = items_of(entry, {"t": RowPredicate("n = 1", NUMBERED)}, deletes=False)

    assert head == RangeItem("t", None, None, 1, 0, deletes=False)
    sent = columns({"1": (1, 1, '{"n":1}')})
    there = page_items([RangeRows(KeyRange("t"), sent, deletes=False)]).to_pylist()
    assert there == [item_text(one).encode() for one in (head, *behind)]
    assert b'"type":"upserts"' in there[0]


@pytest.mark.parametrize("is_vouched", [True, False])
def test_a_range_says_how_many_rows_it_hides(*, is_vouched: bool) -> None:
    """Where the hub vouches for them; it names none of them."""
    shown, other = (RowState(1, 3, csn(n), exists=True, image=f'{{"n":{n}}}') for n in (1, 2))
    rows = (("1", shown), ("2", other), ("3", other))
    entry = RangeRefresh(CONSUMER, KeyRange("t"), rows, ("4",), is_vouched)

    head, *behind = items_of(entry, {"t": RowPredicate("n = 1", NUMBERED)})

    assert head == RangeItem("t", None, None, 2, 2 if is_vouched else 0)
    assert [one.key for one in behind if isinstance(one, Item)] == ["1", "4"]
    sent = columns({"1": (1, 1, '{"n":1}')})
    there = page_items([RangeRows(KeyRange("t"), sent, ("4",), 2 if is_vouched else 0)])
    assert there.to_pylist()[0] == item_text(head).encode()


REFRESHED = Refresh(CONSUMER, "t", '{"k":"k"}', RowState(1, 3, csn(5), exists=True, image="{}"), "")


def log_of(count: int) -> pa.Table:
    """So many refreshes of the consumer, and the entry of a range, as a batch logs them."""
    rows: list[dict[str, object]] = [
        {
            "kind": REFRESH,
            "place": place,
            "to": CONSUMER,
            "table": "t",
            "key": REFRESHED.key,
            "op": "update",
            "rid": 1,
            "csn": csn(5),
            "image": "{}",
            "cause": "",
            "hub_epoch": HUB_EPOCH,
        }
        for place in range(count)
    ]
    rows.append({"kind": RANGE, "place": count, "to": CONSUMER, "table": "t"})
    return pa.Table.from_pylist(rows, schema=CHANGELOG)


NOTHING_SENT = Subscription("a2", CONSUMER, frozenset())


@given(st.integers(0, 3), RANGES, st.integers(1, 4), st.integers(1, 200))
def test_a_batch_of_ranges_is_cut_into_chunks_like_any_other(
    logged: int, ranges: Ranges, count: int, size: int
) -> None:
    """In order, whole, behind what the log sends; the entry of a range itself is no item."""
    position = CoveredPosition(3, NOTHING_KNOWN)
    to_send = SendRange(4, HUB_EPOCH, 4, NOTHING_KNOWN, position, tuple(k for k, *_ in ranges))
    outgoing = OutgoingWithRanges(Outgoing(log_of(logged), {}), encoded(ranges))
    agreement = AgreementState("a2", CONSUMER, session="s")

    found = [*chunks(outgoing, agreement, to_send, NOTHING_SENT, 1, ChunkLimits(count, size))]
    updates = [decode_update(outgoing.value(chunk)) for chunk in found]

    assert [one for update in updates for one in update.items] == [
        *[item(REFRESHED)] * logged,
        *of_core(ranges),
    ]
    assert all(len(update.items) <= count for update in updates)
    assert [update.chunk for update in updates] == [*range(len(updates))]
    assert {(update.hub_epoch, update.covers) for update in updates} == {(HUB_EPOCH, 3)}


@pytest.mark.parametrize("to", [CONSUMER, 1])
def test_the_log_of_a_batch_has_its_ranges_last(to: int) -> None:
    """One row each, whatever they hold; a change or refresh of the batch stands before it."""
    verdicts = judged(records_of(change(10)), {})
    whole, part = KeyRange("t"), KeyRange("u", '{"k":"a"}', '{"k":"b"}')

    log = changelog(verdicts, 8, HUB_EPOCH, [(to, whole), (to, part)])

    assert log.schema == LOG
    found = log.sort_by("place").to_pylist()
    assert [(row["place"], row["kind"]) for row in found] == [(0, CHANGE), (1, RANGE), (2, RANGE)]
    assert [(row["table"], row["key_after"], row["key"]) for row in found[1:]] == [
        ("t", None, None),
        ("u", '{"k":"a"}', '{"k":"b"}'),
    ]
    assert [(row["to"], row["cause"], row["hub_epoch"], row["batch"]) for row in found[1:]] == [
        (to, "page", HUB_EPOCH, 8)
    ] * 2
