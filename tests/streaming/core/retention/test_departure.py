"""A rid that is retired for good leaves the RUVs, and a new replica may have it then."""

from dataclasses import replace

import pytest

from streaming.core.intake import orders
from streaming.core.intake.intake import Intake
from streaming.core.model.command import ReadmitOrder
from streaming.core.model.ruv import Element, Ruv
from streaming.core.model.statuses import AgreementStatus, AwayReason, ReplicaStatus
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.records.record import Reason
from streaming.core.retention.departure import departed, waited_for
from streaming.core.retention.purge import purged_up_to, with_retention
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import RULES, Speaker, intake_of, reasons
from tests.streaming.core.intake.test_stopped import state_of

HOUR_MS = 3_600_000
KNOWN = Ruv("g", {r: Element(csn(4, r), csn(8, r)) for r in (1, 2)})


def retired(acked: int, hub_epoch: int = 5, **changed: object) -> HubState:
    """A hub that has retired replica 1; replica 2 has acknowledged up to a hub epoch."""
    live = AgreementState(
        "a2", 2, AgreementStatus.IN_SYNC, session="s", acked_covers=acked, sent_covers=hub_epoch
    )
    state = HubState(
        1,
        "g",
        hub_epoch=hub_epoch,
        ruvs={DEFAULT_DATASET: KNOWN},
        replicas={1: ReplicaState(1).retired_for_good(7), 2: ReplicaState(2, ReplicaStatus.LIVE)},
        agreements={"a1": AgreementState("a1", 1).retired_for_good(), "a2": live},
    )
    return replace(state, **changed)  # type: ignore[arg-type]


def after(state: HubState, clock_ms: int = 0) -> HubState:
    """The state behind a batch in which nothing else happened."""
    return with_retention(state, state, None, clock_ms, HOUR_MS)


def test_a_rid_leaves_once_all_have_acknowledged_its_retirement() -> None:
    """Until then it is named, with whom it waits for; the hub epochs behind do not count."""
    waits = after(retired(acked=4))
    later = replace(waits, hub_epoch=9)
    a2 = replace(waits.agreements["a2"], acked_covers=5)

    gone = after(replace(later, agreements={**later.agreements, "a2": a2}))

    assert (dict(waits.leaving), waits.left_epoch) == ({1: 5}, 0)
    assert waited_for(waits, 5, 0, HOUR_MS) == ["a2"]
    assert after(later) == later
    assert waits.ruvs[DEFAULT_DATASET] == KNOWN
    assert gone.ruvs[DEFAULT_DATASET].elements.keys() == {2}
    assert (dict(gone.leaving), gone.left_epoch, gone.purge_epoch) == ({}, 5, 0)
    assert gone.largest[1] == purged_up_to(gone)[1] == csn(8, 1)
    assert departed(gone, 0, HOUR_MS) == gone


def test_whoever_does_not_hold_the_purge_is_not_waited_for_and_gets_a_full_copy() -> None:
    """What it lacks of that rid the RUV does not name any more."""
    live = retired(acked=4, away_since={"a2": 0})
    a2 = live.agreements["a2"].away(AwayReason.SILENT, 0)
    silent = replace(live, agreements={**live.agreements, "a2": a2})

    still, gone = after(silent, HOUR_MS - 1), after(silent, HOUR_MS)

    assert (1 in still.ruvs[DEFAULT_DATASET].elements, dict(still.leaving)) == (True, {1: 5})
    assert 1 not in gone.ruvs[DEFAULT_DATASET].elements
    assert not still.agreements["a2"].is_full
    assert gone.agreements["a2"].is_full


def test_only_what_is_retired_for_good_leaves() -> None:
    """A replica that is only not configured goes on when it is back."""
    kept = replace(retired(acked=5), replicas={1: ReplicaState(1).retired(), 2: ReplicaState(2)})

    assert kept.to_leave == {}
    assert after(kept).ruvs[DEFAULT_DATASET] == KNOWN


def readmitted(state: HubState, offset: int = 3) -> Intake:
    """A batch that lets a new replica have rid 1."""
    intake = Intake(state, RULES)
    orders.readmit(intake, ReadmitOrder(1, offset))
    return intake


def test_a_readmitted_rid_begins_with_a_full_copy_and_none_of_its_old_csns() -> None:
    """Its numbers begin anew, its floor is set by its next hello, and what is old is `purged`."""
    gone = after(retired(acked=5))
    numbered = replace(gone.replicas[1], opno=40)
    gone = replace(gone, replicas={**gone.replicas, 1: numbered}, numbers={1: 40})

    intake = readmitted(gone)
    state = state_of(intake)

    replica, agreement = state.replicas[1], state.agreements["a1"]
    assert (replica.status_text, replica.stop_offset, replica.opno) == ("recovered", 3, 0)
    assert (agreement.status_text, agreement.is_full) == ("recovered", True)
    assert agreement.largest_published == gone.hub_epoch
    assert (intake.numbers, intake.counts["readmitted"]) == ({}, 1)
    speaker = Speaker()
    behind = [*speaker.hello(), *speaker.send(change(8), change(9))]
    new = intake_of(behind, state)
    assert reasons(new) == [Reason.PURGED]
    assert [one.change.csn for (one,) in new.eligible] == [csn(9, 1)]
    assert [floor.hub_epoch for floor in new.replicas[1].floors] == [gone.hub_epoch + 1]
    assert new.agreements["a1"].begins_resync


@pytest.mark.parametrize("acked", [4, 5])
def test_what_was_not_taken_out_or_is_leaving_is_not_readmitted(acked: int) -> None:
    """Two lives of one rid at once would be one replica to all others."""
    state = after(retired(acked))
    if acked == 5:
        state = state_of(readmitted(state))

    intake = readmitted(state)

    assert intake.counts["unknown_readmits"] == 1
    assert state_of(intake).replicas == state.replicas
