"""Sessions: what a hello starts and ends, and what stops a replica."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from streaming.core.counts.counter_keys import OLD_GENERATION, ReplicaKey
from streaming.core.intake.sessions import KEPT_FLOORS, KEPT_SESSION_IDS, KEPT_SESSIONS, with_floor
from streaming.core.model.row import Floor
from streaming.core.model.ruv import Element, Ruv
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus, Stop, StopReason
from streaming.core.records.arrival import ControlOutcome
from streaming.core.records.record import Heartbeat, Hello, Reason, ReceivedRecord, Refused
from streaming.core.state.replica_state import ReplicaState
from tests.harness.builders import csn
from tests.streaming.core.intake.speaker import (
    Speaker,
    fresh_state,
    intake_of,
    intake_of_session,
    reasons,
)

C10 = csn(10, 1)


def test_a_hello_sets_the_position_from_which_sending_goes_on() -> None:
    """It is believed, below the estimate too."""
    ruv = Ruv("g", {2: Element(csn(5, 2), csn(5, 2))})
    state = fresh_state(hub_epoch=9, ruv=Ruv("g", {2: Element(csn(5, 2), csn(8, 2))}))

    sent_before = {name: replace(a, sent_ms=900) for name, a in state.agreements.items()}
    state = replace(state, agreements=sent_before)

    intake = intake_of(Speaker().hello(epoch=3, covers=4, ruv=ruv, own=C10), state)

    agreement = intake.agreements["a1"]
    assert intake.replicas[1].epoch == 3
    assert agreement.status is AgreementStatus.CATCHING_UP
    assert agreement.own == C10
    assert (agreement.sent_ms, agreement.acked_ms) == (0, 1_000)
    assert agreement.session == "1-1"
    assert (agreement.sent_epoch, agreement.sent_covers, agreement.scanned) == (4, 4, 4)
    assert (agreement.sent_ruv, agreement.acked_ruv, agreement.acked_covers) == (ruv, ruv, 4)


def test_an_applied_is_the_consumers_last_word() -> None:
    """One that comes late does not take it back."""
    speaker = Speaker()
    state = fresh_state(hub_epoch=9)
    intake = intake_of(speaker.hello(), state)
    intake.agreements["a1"] = replace(intake.agreements["a1"], sent_covers=9)

    for received in [*speaker.applied(epoch=2, covers=7), *speaker.applied(epoch=1, covers=5)]:
        intake.take(received)

    assert intake.agreements["a1"].acked_covers == 7
    assert intake.agreements["a1"].acked_ms == 1_001
    assert intake.replicas[1].epoch == 3


def test_an_applied_of_the_same_covers_is_a_newer_word() -> None:
    """A consumer that repeats its position is alive, and its RUV may be another."""
    speaker = Speaker()
    intake = intake_of(speaker.hello(), fresh_state())

    for received in speaker.applied(epoch=1, covers=0):
        intake.take(received)

    assert intake.agreements["a1"].acked_ms == 1_001


def test_sessions_are_bounded() -> None:
    """A replica that crashes all the time does not fill the commit row."""
    speaker = Speaker()

    intake = intake_of([received for _ in range(300) for received in speaker.hello()])

    assert len(intake.replicas[1].sessions) == KEPT_SESSIONS
    assert len(intake.replicas[1].known_sessions) == KEPT_SESSION_IDS
    assert intake.hellos == 300


def test_floors_are_bounded_and_merged_on_the_safe_side() -> None:
    """What the merged floors block and give back includes all that every floor did."""
    floors = [Floor(10 * n, 5 * n, csn(3 * n, 1), csn(3 * n + 2, 1)) for n in range(1, 20)]
    replica = ReplicaState(1)
    for floor in floors:
        replica = with_floor(replica, floor)

    kept = replica.floors

    assert len(kept) == KEPT_FLOORS
    assert kept[1:] == tuple(floors[-KEPT_FLOORS + 1 :])
    oldest, newest = floors[0], floors[-KEPT_FLOORS]
    assert kept[0] == Floor(newest.hub_epoch, oldest.offset, oldest.after, newest.upto)
    for offset in range(5 * 20):
        assert epoch_behind(kept, offset) >= epoch_behind(floors, offset)
        assert bool(epoch_behind(kept, offset)) is bool(epoch_behind(floors, offset))
    for number in range(3 * 20):
        given_back = any(floor.gives_back(csn(number, 1)) for floor in floors)
        assert any(floor.gives_back(csn(number, 1)) for floor in kept) >= given_back


def epoch_behind(floors: Iterable[Floor], offset: int) -> int:
    """The hub epoch that a change at this offset must have seen because of these floors."""
    return max((floor.hub_epoch for floor in floors if floor.offset < offset), default=0)


STOPPING: dict[str, tuple[Callable[[Speaker], list[ReceivedRecord]], StopReason]] = {
    "it covers what was never committed": (lambda s: s.hello(covers=1), StopReason.HUB_BEHIND),
    "it is of a later generation": (lambda s: s.hello(generation=2), StopReason.HUB_BEHIND),
    "it knows a change that is not here": (
        lambda s: s.hello(ruv=Ruv("g", {2: Element(csn(5, 2), csn(6, 2))})),
        StopReason.HUB_BEHIND,
    ),
    "it is of another initial load": (
        lambda s: s.hello(ruv=Ruv("other")),
        StopReason.OTHER_REPLICAGENERATION,
    ),
    "it understands no version that the hub speaks": (
        lambda s: s.send(Hello(0, 0, 1, Ruv(), None, lost=False, versions=(2, 3))),
        StopReason.UNSUPPORTED,
    ),
}


@pytest.mark.parametrize("case", STOPPING.values(), ids=STOPPING.keys())
def test_a_hello_that_cannot_be_answered_stops_the_replica(
    case: tuple[Callable[[Speaker], list[ReceivedRecord]], StopReason],
) -> None:
    """Nothing is sent over a gap."""
    hello, reason = case
    before = fresh_state(ruv=Ruv("g", {2: Element(csn(5, 2), csn(5, 2))}))

    intake = intake_of(hello(Speaker()), before)

    assert intake.replicas[1].status == reason.value
    assert intake.agreements["a1"].status == reason.value
    assert intake.hellos == 0


def test_what_a_replica_knows_of_strangers_does_not_stop_it() -> None:
    """A rid that only the consumer knows is ignored."""
    intake = intake_of(Speaker().hello(ruv=Ruv("g", {9: Element(csn(5, 9), csn(6, 9))})))

    assert intake.replicas[1].status is ReplicaStatus.LIVE
    assert intake.replicas[2].status is ReplicaStatus.SILENT


def test_a_heartbeat_tells_the_epoch() -> None:
    """And nothing else."""
    intake = intake_of_session(Heartbeat(7))

    assert intake.replicas[1].epoch == 7
    assert intake.eligible == []


def test_the_last_word_on_what_is_unpublished_counts() -> None:
    """A hello and a heartbeat have it; without it there is none, as of an agent that cannot say."""
    speaker = Speaker()
    hello = Hello(0, 0, 1, Ruv(), None, lost=False, unpublished=5)
    speaker.session = "1-1"

    said = [
        intake_of(speaker.send(hello)),
        intake_of([*speaker.received, *speaker.send(Heartbeat(1, 3))]),
        intake_of([*speaker.received, *speaker.send(Heartbeat(1))]),
        intake_of([*speaker.received, *speaker.hello()]),
    ]

    assert [one.replicas[1].unpublished for one in said] == [5, 3, 0, 0]


@pytest.mark.parametrize("versions", [None, (1,), (1, 2), (3, 1)])
def test_a_hello_that_shares_a_wire_version_is_answered(versions: tuple[int, ...] | None) -> None:
    """An agent that is newer than its hub goes on with what both understand."""
    speaker = Speaker(1)
    hello = Hello(0, 0, 1, Ruv(), None, lost=False, versions=versions)

    intake = intake_of(speaker.send(hello))

    assert intake.replicas[1].status is ReplicaStatus.LIVE


def test_older_sessions_stay_known_when_one_reflects() -> None:
    """A change of an older session that waited is judged by what that one had reflected."""
    speaker = Speaker()
    records = [*speaker.hello(), *speaker.hello(epoch=4), *speaker.hello(epoch=6)]
    intake = intake_of(records, fresh_state(hub_epoch=9))
    intake.agreements["a1"] = replace(intake.agreements["a1"], sent_covers=9)

    for record in speaker.applied(7, 8):
        intake.take(record)

    sessions = intake.replicas[1].sessions
    assert [one.id for one in sessions] == ["1-1", "1-2", "1-3"]
    assert [one.mre for one in sessions] == [0, 0, 8]
    assert intake.events[-1][1] is ControlOutcome.TAKEN


def test_an_applied_of_what_was_not_sent_says_so() -> None:
    """An operator reads it in quarantine."""
    speaker = Speaker()

    intake = intake_of([*speaker.hello(), *speaker.applied(1, 3)], fresh_state(hub_epoch=9))

    (kept,) = intake.quarantined
    assert kept.detail == (
        "applied covers 3 of generation 1; this session was sent 0 of generation 1"
    )


@pytest.mark.parametrize("session", ["in force", "of an agent that ended"])
def test_an_answer_to_what_an_older_generation_sent_is_ignored_and_counted(session: str) -> None:
    """It says nothing of rows, so an operator who put a state back has nothing to drop."""
    speaker = Speaker()
    state = replace(fresh_state(hub_epoch=20), generation=2)
    intake = intake_of(speaker.hello(generation=2), state)
    speaker.session = speaker.session if session == "in force" else "an older one"
    refused = Refused(9, C10, "t", '{"k":"1"}', "check", "CHECK constraint failed")

    for received in [*speaker.applied(3, 9, generation=1), *speaker.send(refused)]:
        intake.take(received)

    assert intake.quarantined == []
    assert [outcome for _, outcome in intake.events[1:]] == [ControlOutcome.OLD_GENERATION] * 2
    assert intake.counts == {ReplicaKey(OLD_GENERATION, 1): 2}
    assert intake.agreements["a1"].acked_covers == 0
    assert intake.replicas[1].mre == 0


def test_an_answer_to_a_generation_that_is_to_come_stops_its_replica() -> None:
    """Nobody but another hub can have sent that, or this one before its state was put back."""
    speaker = Speaker()

    intake = intake_of([*speaker.hello(), *speaker.applied(1, 0, generation=2)])

    assert intake.replicas[1].status is ReplicaStatus.HUB_BEHIND
    assert intake.agreements["a1"].status is AgreementStatus.HUB_BEHIND
    assert "if another hub sends to its updates topic" in Stop(StopReason.HUB_BEHIND).remedy


def test_a_refusal_of_what_this_generation_did_not_send_is_kept() -> None:
    """A hub whose state was never put back has sent all that there is to refuse."""
    speaker = Speaker()
    refused = Refused(9, C10, "t", '{"k":"1"}', "check", "CHECK constraint failed")

    intake = intake_of([*speaker.hello(), *speaker.send(refused)], fresh_state(hub_epoch=20))

    assert reasons(intake) == [Reason.SESSION]
