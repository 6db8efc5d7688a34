"""What a replica becomes that an operator takes out for good."""

from dataclasses import replace

import pytest

from streaming.core.batch.sending import stop_answers
from streaming.core.intake import orders
from streaming.core.intake.input_lost import DELETED, InputLoss
from streaming.core.intake.intake import Intake
from streaming.core.model.statuses import ReplicaStatus, Stop, StopReason, remedy_of
from streaming.core.state.hub_state import HubState
from streaming.core.state.membership import adopted
from tests.harness.builders import change
from tests.streaming.core.intake.speaker import RULES, Speaker, fresh_state, intake_of, numbers
from tests.streaming.core.intake.test_stopped import anew, state_of

RETIRED = "retired: for good"


def retired(state: HubState, offset: int = 1) -> Intake:
    """A batch that retires replica 1 before the record at `offset`."""
    intake = Intake(state, RULES)
    orders.retire(intake, 1, offset)
    return intake


def live(speaker: Speaker) -> HubState:
    """The hub when this replica has said hello."""
    return state_of(intake_of(speaker.hello()))


def test_a_retired_replica_stays_so_while_it_is_configured() -> None:
    """One that is only not configured comes back with its configuration; this one does not."""
    after = adopted(state_of(retired(live(Speaker()))), RULES, [1, 2])

    assert {rid: one.status_text for rid, one in after.replicas.items()} == {
        1: RETIRED,
        2: ReplicaStatus.SILENT,
    }
    assert {n: one.is_retired for n, one in after.agreements.items()} == {"a1": True, "a2": False}
    assert after.replicas[1].stop_offset == 1
    assert adopted(adopted(after, RULES, [2]), RULES, [1, 2]).replicas[1].status_text == RETIRED


def test_a_retired_replica_does_not_start_anew_and_is_told_why() -> None:
    """Not even with an emptied database: its rid is used up."""
    speaker = Speaker()
    after = state_of(retired(live(speaker)))

    intake = Intake(after, RULES)
    for record in [*speaker.send(change(8)), *anew(speaker)]:
        intake.take(record)
    intake.leave_unread(10)
    again = state_of(intake)

    assert again.replicas[1].status_text == RETIRED
    assert (numbers(intake), intake.quarantined) == ([], [])
    (answer,) = stop_answers(after, again)
    assert (answer.session, answer.state) == (speaker.session, RETIRED)
    assert remedy_of(ReplicaStatus.RETIRED, "") is None


def test_a_retired_replica_stays_so_though_its_topic_is_deleted() -> None:
    """An earlier version took it for one that `recover` brings back, though its rid is used up."""
    intake = retired(live(Speaker()), 5)

    orders.record_lost_input(intake, InputLoss(1, DELETED, 0))
    orders.recover(intake, 1)

    assert intake.replicas[1].status_text == RETIRED
    assert intake.agreements["a1"].status_text == RETIRED
    assert intake.replicas[1].stop_offset == 0
    assert (intake.counts["input_lost"], intake.counts["unknown_recovers"]) == (1, 1)


def test_a_replica_that_was_stopped_stays_where_it_stopped() -> None:
    """What follows there was not taken before, and is not now."""
    state = live(Speaker())
    stop = state.replicas[1].stopped(Stop(StopReason.HUB_BEHIND), 3)

    after = state_of(retired(replace(state, replicas={**state.replicas, 1: stop}), 7))

    assert after.replicas[1].stop_offset == 3


@pytest.mark.parametrize("rid", [1, 77])
def test_a_replica_is_retired_once(rid: int) -> None:
    """A repeated command, or one that names nobody, changes nothing."""
    intake = retired(live(Speaker()))

    orders.retire(intake, rid, 9)

    assert (intake.counts["retired"], intake.counts["unknown_retires"]) == (1, 1)
    assert intake.replicas[1].stop_offset == 1


def test_a_silent_replica_can_be_retired() -> None:
    """It was configured by mistake, or never came."""
    assert state_of(retired(fresh_state(), 0)).replicas[1].status_text == RETIRED
