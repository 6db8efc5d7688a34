"""The ordinals that were seen, against the set of all of them."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.intake.opnos import seen_opnos
from streaming.core.state.replica_state import ReplicaState

pytestmark = pytest.mark.hypothesis


@given(st.lists(st.integers(1, 30)))
def test_what_is_kept_is_the_set_of_all_that_were_seen(opnos: list[int]) -> None:
    """A hole may be filled in any order, and a repeat changes nothing."""
    seen = seen_opnos(ReplicaState(1))

    for opno in opnos:
        seen.add(opno)

    first_hole = next(n for n in count(1) if n not in opnos)
    state = seen.of(ReplicaState(1))
    assert state.opno == first_hole - 1
    assert state.opno_above == {n for n in opnos if n > first_hole}
    assert [n in seen for n in range(1, 31)] == [n in opnos for n in range(1, 31)]


def test_the_state_it_came_from_stays_as_it_was() -> None:
    """A batch that is judged again starts from the same state."""
    before = ReplicaState(1, opno=5, opno_above=frozenset({7, 8}))

    seen = seen_opnos(before)
    seen.add(6)

    assert before == ReplicaState(1, opno=5, opno_above=frozenset({7, 8}))
    assert seen.of(before) == ReplicaState(1, opno=8)
