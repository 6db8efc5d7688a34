"""Claims about the bytes a second of an agreement."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.hub.batch.throttle import Throttle
from tests.harness.examples import examples


def test_who_sent_more_than_its_rate_waits_for_as_long_as_that_takes() -> None:
    """The others do not; what was sent before the wait is over adds up."""
    throttle = Throttle()

    throttle.note("b", 3_000, 1_000, 10_000)
    throttle.note("b", 1_000, 1_000, 12_000)
    throttle.note("c", 9_999_999, 0, 10_000)

    assert (throttle.held(10_000), throttle.held(13_999), throttle.held(14_000)) == (
        ("b",),
        ("b",),
        (),
    )


@given(st.lists(st.tuples(st.integers(0, 50_000), st.integers(0, 9_000)), max_size=30))
@examples()
def test_the_rate_holds_on_average(batches: list[tuple[int, int]]) -> None:
    """Whatever is sent whenever it may be."""
    throttle, clock_ms, sent = Throttle(), 1_000, 0
    for size, wait_ms in batches:
        clock_ms += wait_ms
        if not throttle.holds("b", clock_ms):
            assert sent <= (clock_ms - 1_000) + len(batches)
            throttle.note("b", size, 1_000, clock_ms)
            sent += size
