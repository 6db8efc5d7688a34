"""The keys under which conflict counters stand among the totals."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.batch.counters import DELETE_DELETE, FUNCTION, REFRESH
from streaming.core.conflict.judge import ConflictKind
from streaming.core.counts.counter_keys import (
    ConflictKey,
    CountKey,
    ReplicaKey,
    key_text,
    parse_key,
)
from streaming.core.model.function import ConflictRule

NAMES = st.sampled_from([DELETE_DELETE, FUNCTION + "epoch", REFRESH])
RIDS = st.integers(1, 65535)
KINDS, RULES = st.sampled_from(ConflictKind), st.sampled_from(["", *ConflictRule])


@given(
    st.builds(ReplicaKey, NAMES, RIDS, st.text())
    | st.builds(ConflictKey, KINDS, RULES, RIDS, st.text())
    | st.sampled_from(["judged", "accepted"])
)
def test_a_key_is_read_as_it_was_written(key: CountKey) -> None:
    """A table may be called anything, also with a slash; its counts must not go to another."""
    found = parse_key(key_text(key))

    assert (type(found), found) == (type(key), key)
