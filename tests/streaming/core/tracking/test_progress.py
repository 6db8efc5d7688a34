"""A page is counted once, in its commit; all of it is shown only when it is over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.errors import StateError
from streaming.core.tracking.progress import (
    WHOLE,
    Piece,
    ResyncMode,
    WorkKind,
    begin,
    estimated_end,
    progress,
)
from tests.harness.examples import examples


def test_a_page_behind_the_last_one_is_refused() -> None:
    """It would raise what is counted above what was sent."""
    piece = Piece("t", WorkKind.SCAN, 3)
    closed = begin(ResyncMode.FULL, 0, [piece]).page_sent(piece.table, 3, "2", is_last=True)

    with pytest.raises(StateError, match="came after its last"):
        closed.page_sent(piece.table, 1, "3", is_last=False)


def test_rows_that_went_live_are_counted_when_the_table_is_closed() -> None:
    """A page leaves out what was written again; the resync ends at all of it nevertheless."""
    piece = Piece("t", WorkKind.PAGE, 10)
    accounting = begin(ResyncMode.INCREMENTAL, 0, [piece])

    half = accounting.page_sent(piece.table, 4, "d", is_last=False)
    closed = half.page_sent(piece.table, 1, "z", is_last=True)

    assert (half.sent_rows, half.total_rows, half.is_finished) == (4, 10, False)
    assert half.accounts["t"].piece == piece._replace(after="d")
    assert (closed.sent_rows, closed.total_rows, closed.is_finished) == (10, 10, True)


@examples()
@given(st.integers(0, 9), st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_what_is_sent_never_exceeds_the_total(expected: int, pages: list[int]) -> None:
    """A scan meets rows that were not counted when it began; in the end all of it is sent."""
    accounting = begin(ResyncMode.INCREMENTAL, 0, [Piece("t", WorkKind.SCAN, expected)])
    for number, rows in enumerate(pages, start=1):
        assert not accounting.is_finished
        is_last = number == len(pages)
        accounting = accounting.page_sent("t", rows, str(number), is_last=is_last)
        assert accounting.sent_rows <= accounting.total_rows

    assert accounting.is_finished
    assert accounting.tables_left == 0
    assert accounting.sent_rows == accounting.total_rows == max(expected, sum(pages))


@examples()
@given(st.integers(0, 10**9), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_an_estimate_is_in_the_future_or_nothing(
    start: int, elapsed: int, total: int, done: int
) -> None:
    """In proportion to what was done so far; nothing at the beginning and at the end."""
    now = start + elapsed

    end = estimated_end(start, now, total, done)

    if 0 < done < total:
        assert end is not None
        assert now <= end
        assert (end - now) * done <= elapsed * (total - done) < (end - now + 1) * done
    else:
        assert end is None


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.none() | st.integers(1, 10**9))
def test_all_of_it_is_shown_only_when_it_is_over(done: int, total: int, end: int | None) -> None:
    """Rounding never announces the end; the state does."""
    done = min(done, total)

    shown_total, share = progress(done, total, end, is_over=False)

    assert progress(done, total, end, is_over=True) == (None, WHOLE)
    assert (share is None) == (end is None or total == 0)
    assert share is None or 0 <= share < WHOLE
    assert shown_total == (None if end is None else total)
