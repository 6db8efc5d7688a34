"""Pages send each tracked row once and never over a gap."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.tracking.entry import HubPosition, TrackedRow, newest
from streaming.core.tracking.paging import (
    PageDecision,
    next_page,
    page_end,
    page_rule,
    pages,
    scan_rule,
)
from tests.harness.examples import examples
from tests.streaming.core.tracking.rows_while_away import positions

KEYS = ("a", "b", "c", "d")
writes = st.lists(st.sampled_from(KEYS), max_size=20)
"""The keys of writes in hub order, one hub epoch each."""


def row_at(history: list[str], key: str, hub_epoch: int) -> HubPosition | None:
    """The last write of a row up to a hub epoch."""
    found = [n for n, one in enumerate(history[:hub_epoch], start=1) if one == key]
    return HubPosition(found[-1]) if found else None


@examples()
@given(writes, st.data())
def test_a_page_and_the_live_batches_bring_every_row_up_to_date(
    history: list[str], data: st.DataObject
) -> None:
    """Whatever the consumer had, and whenever its page is sent: it ends with each row's last write.

    Live batches are sent behind the end of the resync, in hub order among the pages.
    """
    acked = data.draw(st.integers(0, len(history)), label="acked")
    end = data.draw(st.integers(acked, len(history)), label="end")
    tracked = newest(
        TrackedRow("t", 1, key, HubPosition(n))
        for n, key in enumerate(history[:end], start=1)
        if n > acked
    )
    sent_at = {
        one.key: data.draw(st.integers(end, len(history)), label=f"page of {one.key}")
        for one in tracked
    }
    consumer = {key: row_at(history, key, acked) for key in KEYS}

    for now in range(end, len(history) + 1):
        if now > end:
            consumer[history[now - 1]] = HubPosition(now)  # live
        for one in tracked:
            if sent_at[one.key] == now:
                row = row_at(history, one.key, now)
                decision = page_rule(one.position, row)
                assert decision in (PageDecision.SEND, PageDecision.LEAVE_TO_LIVE)
                if decision is PageDecision.SEND:
                    consumer[one.key] = row

    assert consumer == {key: row_at(history, key, len(history)) for key in KEYS}


@given(positions, st.none() | positions)
def test_nothing_is_sent_over_a_write_that_the_row_lacks(
    tracked: HubPosition, row: HubPosition | None
) -> None:
    """A row is sent only as what was tracked; one that is gone is deleted; older is an error."""
    decision = page_rule(tracked, row)

    assert (decision is PageDecision.SEND) == (row == tracked)
    assert (decision is PageDecision.SEND_DELETE) == (row is None)
    assert (decision is PageDecision.LEAVE_TO_LIVE) == (row is not None and row > tracked)
    assert (decision is PageDecision.INCONSISTENT) == (row is not None and row < tracked)


@given(positions, st.none() | positions, positions)
def test_a_bounded_scan_leaves_to_live_only_what_is_behind_its_end_or_was_sent(
    row: HubPosition, restart: HubPosition | None, end: HubPosition
) -> None:
    """Both bounds are in."""
    sends = scan_rule(row, restart, end) is PageDecision.SEND

    assert sends == ((restart or row) <= row <= end)


@examples()
@given(st.lists(st.integers(0, 50), unique=True), st.integers(1, 7))
def test_every_key_is_on_one_page_in_order(keys: list[int], size: int) -> None:
    """However they lie in the log, and where a page ends on the last key there is no other."""
    found = list(pages(keys, size, lambda key: key))

    assert [key for page in found for key in page] == sorted(keys)
    assert all(len(page) == size for page in found[:-1])
    assert all(found)


def halved(number: int) -> int:
    """An order in which two keys are equal each, as decimals that differ in their zeros."""
    return number // 2


@examples()
@given(st.lists(st.integers(0, 20)).map(sorted), st.integers(1, 25))
def test_a_page_ends_between_keys_that_differ(keys: list[int], end: int) -> None:
    """The later of two equal keys would be a stranger of its range, and deleted.

    See docs/traps.md, A page ends between two spellings of one key.
    """
    found = page_end(keys, end, halved)

    assert min(end, len(keys)) <= found <= len(keys)
    assert found == len(keys) or halved(keys[found - 1]) < halved(keys[found])
    assert len({halved(key) for key in keys[end - 1 : found]}) <= 1


@examples()
@given(st.sets(st.integers(0, 50)), st.integers(1, 7))
def test_equal_keys_are_on_one_page(keys: set[int], size: int) -> None:
    """Which is larger than others then; no key is lost or sent twice."""
    found = list(pages(keys, size, halved))

    assert sorted(key for page in found for key in page) == sorted(keys)
    places = [{halved(key) for key in page} for page in found]
    assert sum(map(len, places)) == len(set[int]().union(*places))
    assert all(size <= len(page) <= size + 1 for page in found[:-1])


@examples()
@given(st.sets(st.integers(0, 50)), st.sets(st.integers(0, 50)), st.integers(1, 7))
def test_pages_go_on_behind_the_last_key_whatever_came_or_went(
    before: set[int], after: set[int], size: int
) -> None:
    """The key that was sent last may be gone when the next page is cut."""
    first = next_page(sorted(before), size, lambda key: key)
    last = first[-1] if first else None

    second = next_page(sorted(after), 100, lambda key: key, last)

    assert set(second) == {key for key in after if last is None or key > last}
