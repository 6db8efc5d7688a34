"""The keys under which conflict counters stand among the totals."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.batch.counters import DELETE_DELETE, FUNCTION, REFRESH
from streaming.core.counts.counter_keys import counter, split_counter


@given(
    st.sampled_from([DELETE_DELETE, FUNCTION + "epoch", REFRESH]), st.integers(1, 65535), st.text()
)
def test_a_key_is_read_as_it_was_written(name: str, rid: int, table: str) -> None:
    """A table may be called anything, also with a slash; its counts must not go to another."""
    assert split_counter(counter(name, rid, table)) == (name, rid, table)


def test_other_totals_are_no_counters() -> None:
    """They stand in the same map of the commit row."""
    assert split_counter("judged") is None
