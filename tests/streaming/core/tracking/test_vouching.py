"""The hub vouches for what a range hides only where the consumer has rows of this hub's alone."""

import pytest

from streaming.core.batch.vouching import is_vouched
from streaming.core.model.row import Floor
from streaming.core.state.replica_state import ReplicaState

COVERS = 5


@pytest.mark.parametrize(
    ("floors", "covers", "expected"),
    [
        pytest.param([], COVERS, True, id="it has applied something"),
        pytest.param([], 0, False, id="its rows are from before, or of another generation"),
        pytest.param([COVERS], COVERS, True, id="it has reflected what it lost"),
        pytest.param([3, COVERS + 1], COVERS, False, id="its database or its topic lost something"),
    ],
)
def test_a_consumer_is_vouched_for(floors: list[int], covers: int, *, expected: bool) -> None:
    """Otherwise a row that goes with the range may be the last one of its kind."""
    consumer = ReplicaState(2, floors=tuple(Floor(epoch, 0, "", "") for epoch in floors))

    assert is_vouched(consumer, covers) is expected
