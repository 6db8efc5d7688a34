"""The window holds what judging needs and nothing more."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.conflict.window import Window, key_of, last_touched, text_of
from streaming.core.model.row import Realign, RowState

ROWS = st.lists(st.tuples(st.integers(1, 9), st.sampled_from("abc"), st.integers(0, 9)))


def row(epoch: int, realign: int) -> RowState:
    """A row written in one epoch and, if not 0, realigned in another."""
    realigns = (Realign(2, realign),) if realign else ()
    return RowState(1, epoch, f"{epoch:020x}", exists=True, realign=realigns)


@given(ROWS, st.integers(0, 10))
def test_advancing_forgets_exactly_what_was_not_touched_above(
    writes: list[tuple[int, str, int]], edge: int
) -> None:
    """One row too few is a lost conflict; one too many is memory that never comes back."""
    window, expected = Window(), dict[str, RowState]()
    for epoch, name, realign in sorted(writes):
        one = row(epoch, min(epoch, realign))
        window.merge(epoch, {name: one})
        expected[name] = one

    window.advance(edge)

    assert window.rows == {n: r for n, r in expected.items() if last_touched(r) > edge}
    assert window.edge == edge


def test_a_realign_keeps_an_old_row_in_memory() -> None:
    """A follow-up of the realigned replica is concurrent until it has reflected the refresh."""
    window = Window()
    window.merge(1, {"k": row(1, 0)})
    window.merge(5, {"k": row(1, 5)})

    window.advance(4)

    assert "k" in window.rows


def test_the_name_of_a_row_is_one_to_one() -> None:
    """Two rows under one name would be judged as one."""
    assert key_of(text_of(("t", '{"id":"1"}'))) == ("t", '{"id":"1"}')


@given(ROWS, st.integers(0, 4))
def test_shrinking_forgets_the_oldest_hub_epochs_and_no_more(
    writes: list[tuple[int, str, int]], size: int
) -> None:
    """Memory is bounded, and what may be concurrent stays there as long as it can."""
    window = Window()
    for epoch, name, realign in sorted(writes):
        window.merge(epoch, {name: row(epoch, min(epoch, realign))})
    before = dict(window.rows)

    window.shrink(size)

    assert len(window) <= size
    assert window.rows == {n: r for n, r in before.items() if last_touched(r) > window.edge}
    youngest_gone = [r for r in before.values() if last_touched(r) == window.edge]
    assert not window.edge or len(window) + len(youngest_gone) > size
