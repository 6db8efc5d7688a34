"""Pages send each tracked row as it stands, and end between keys that differ."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.row import RowState
from streaming.core.tracking.resync import goes_live, page_end
from tests.harness.examples import examples

KEYS = ("a", "b", "c", "d")
writes = st.lists(st.sampled_from(KEYS), max_size=20)
"""The keys of writes in hub order, one hub epoch each."""


def row_at(history: list[str], key: str, hub_epoch: int) -> RowState:
    """A row as its last write up to a hub epoch left it."""
    found = [n for n, one in enumerate(history[:hub_epoch], start=1) if one == key]
    return RowState(1, found[-1]) if found else RowState()


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
    tracked = {key: n for n, key in enumerate(history[:end], start=1) if n > acked}
    sent_at = {
        key: data.draw(st.integers(end, len(history)), label=f"page of {key}") for key in tracked
    }
    consumer = {key: row_at(history, key, acked) for key in KEYS}

    for now in range(end, len(history) + 1):
        if now > end:
            consumer[history[now - 1]] = RowState(1, now)  # live
        for key, hub_epoch in tracked.items():
            row = row_at(history, key, now)
            if sent_at[key] == now and not goes_live(hub_epoch, row):
                consumer[key] = row

    assert consumer == {key: row_at(history, key, len(history)) for key in KEYS}


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
