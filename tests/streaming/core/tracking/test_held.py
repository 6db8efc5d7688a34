"""Nobody is told that a consumer has what a page still has to bring."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.ruv import Ruv
from streaming.core.tracking.held import CoveredPosition, ResyncAtHello, announced, at_hello
from tests.harness.builders import csn


def after(hub_epoch: int) -> CoveredPosition:
    """The hub after a hub epoch, each with a change of its own."""
    return CoveredPosition(hub_epoch, Ruv("g").with_csn(csn(hub_epoch)))


@given(st.integers(1, 9), st.lists(st.sampled_from(("live", "page")), min_size=1, max_size=9))
def test_covers_moves_with_the_last_page_and_not_before(begin: int, batches: list[str]) -> None:
    """Live batches between the pages say no more than they do; RUV and covers move together."""
    held: CoveredPosition | None = after(begin)
    to_come = batches.count("page")

    for hub_epoch, kind in enumerate(batches, start=begin + 1):
        to_come -= kind == "page"
        is_last = kind == "page" and to_come == 0
        said = announced(held, after(hub_epoch), is_last_page=is_last)
        held = None if is_last else held
        if held is None:
            assert said == after(hub_epoch)
        else:
            assert said == after(begin)


@pytest.mark.parametrize(
    ("lost", "same", "reached"), [*product((False, True), (False, True), (6, 7))]
)
def test_a_resync_goes_on_only_for_a_consumer_that_has_all_that_came_before(
    *, lost: bool, same: bool, reached: int
) -> None:
    """Else its pages count as not delivered."""
    found = at_hello(end_epoch=7, reached=reached, lost=lost, is_of_this_generation=same)

    expected = not lost and same and reached == 7
    assert (found is ResyncAtHello.GOES_ON) == expected
