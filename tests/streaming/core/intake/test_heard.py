"""Whether a replica is heard: by its goodbye, its records' times and the hub's own clock."""

import pytest

from streaming.core.intake.liveness import TopicMove, Unheard, UnheardReason, unheard
from streaming.core.model.statuses import ReplicaStatus
from streaming.core.state.replica_state import AgentEnd, ReplicaState

LIVE = ReplicaState(1, ReplicaStatus.LIVE, seen_ms=100_000)
HOUR_MS = 3_600_000


def test_who_never_said_hello_is_not_heard() -> None:
    """Nobody knows what its database holds."""
    assert unheard(ReplicaState(1), None, 0, 30_000) == Unheard(UnheardReason.NEVER)


def test_a_goodbye_counts_at_once() -> None:
    """What is written a moment later is written unseen."""
    ended = ReplicaState(1, ReplicaStatus.LIVE, seen_ms=100_000, ended=AgentEnd(100_000, 3))

    assert unheard(ended, None, 100_000, 30_000) == Unheard(UnheardReason.ENDED, 100_000, 3)


@pytest.mark.parametrize(("at_ms", "is_heard"), [(130_000, True), (130_001, False)])
def test_silence_counts_from_the_timeout_on(at_ms: int, *, is_heard: bool) -> None:
    """A killed agent says no goodbye."""
    found = unheard(LIVE, None, at_ms, 30_000)

    assert found == (None if is_heard else Unheard(UnheardReason.SILENT, 100_000))


def test_a_slow_clock_makes_nobody_silent() -> None:
    """Its records come: the hub sees its topic grow."""
    move = TopicMove(100_000 + HOUR_MS, 102_000 + HOUR_MS)

    assert unheard(LIVE, move, 103_000 + HOUR_MS, 30_000) is None


def test_a_fast_clock_makes_nobody_heard() -> None:
    """Its last record is of the next hour, and its agent is dead."""
    move = TopicMove(90_000 - HOUR_MS, 92_000 - HOUR_MS)

    found = unheard(LIVE, move, 100_000, 30_000)

    assert found == Unheard(UnheardReason.SILENT, 92_000 - HOUR_MS)


def test_a_stopped_replica_is_another_matter() -> None:
    """What to do about it is said where it is named as stopped."""
    stopped = ReplicaState(1, ReplicaStatus.HUB_BEHIND, ended=AgentEnd(1, 0))

    assert unheard(stopped, None, HOUR_MS, 30_000) is None
