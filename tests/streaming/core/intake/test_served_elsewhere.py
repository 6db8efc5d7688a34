"""A replica that another hub serves: what its records mean here, and what it is sent: nothing."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.intake.intake import Intake
from streaming.core.intake.orders import pause, resync
from streaming.core.model.command import ResyncOrder
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus
from streaming.core.records.arrival import ControlOutcome
from streaming.core.records.record import Applied, Hello, ReceivedRecord, Refused
from streaming.core.state.reflection import KEPT_STEPS, Session
from streaming.core.state.topology import Topology
from tests.harness.builders import csn
from tests.harness.examples import examples
from tests.streaming.core.intake.speaker import RULES, T, fresh_state, intake_of

ELSEWHERE = "change_tracking: elsewhere"
KNOWN = Ruv("g").with_csn(csn(1, 2)).with_csn(csn(7, 2))


def said(*records: object, session: str = "s", begins: int = 0) -> list[ReceivedRecord]:
    """Records of replica 1's topic, in one session."""
    return [
        ReceivedRecord(1, begins + place, 1_000 + place, session, record)  # type: ignore[arg-type]
        for place, record in enumerate(records)
    ]


def hello(
    agreement: str | None, *, covers: int = 500, ruv: Ruv = KNOWN, of: str | None = None
) -> Hello:
    """A hello with the position of a hub that has more hub epochs than this one."""
    return Hello(3, covers, 9, ruv, None, lost=False, agreement=agreement, ruv_of=of)


def taken(*records: ReceivedRecord, hub_epoch: int = 4) -> Intake:
    """What a hub makes of them that knows one change less of replica 2 than they do."""
    return intake_of(records, fresh_state(hub_epoch, Ruv("g").with_csn(csn(6, 2))))


def test_a_hello_to_another_hub_stops_nobody_and_sends_nothing() -> None:
    """Its covers, generation and RUV are above all that this hub has: they are not about it."""
    intake = taken(*said(hello("other")))

    assert intake.replicas[1].status is ReplicaStatus.LIVE
    assert intake.replicas[1].mre == 0
    assert intake.agreements["a1"].status_text == ELSEWHERE
    assert not intake.agreements["a1"].is_sent_to


@pytest.mark.parametrize("agreement", [None, "a1"])
def test_the_same_to_this_hub_shows_that_its_state_is_old(agreement: str | None) -> None:
    """Absent is this hub's: agents of before name none."""
    intake = taken(*said(hello(agreement)))

    assert intake.replicas[1].status is ReplicaStatus.HUB_BEHIND


def test_another_initial_load_stops_a_replica_at_every_hub() -> None:
    """Its CSNs mean other changes."""
    intake = taken(*said(hello("other", ruv=Ruv("of another"))))

    assert intake.replicas[1].status is ReplicaStatus.OTHER_REPLICAGENERATION


def test_what_it_applied_of_the_other_hub_is_seen_in_later_epochs() -> None:
    """In the epoch in which it applied something it may have written before that."""
    later = KNOWN.with_csn(csn(8, 2))
    intake = taken(*said(hello("other"), Applied(5, 600, 9, later)))

    session = intake.replicas[1].session
    assert session is not None
    assert [session.seen_elsewhere(epoch) for epoch in (3, 4, 5, 6)] == [None, KNOWN, KNOWN, later]
    assert intake.replicas[1].epoch == 6
    assert not intake.quarantined


def test_what_a_database_refused_of_the_other_hub_is_no_matter_of_this_one() -> None:
    """It names a hub epoch that is another one here."""
    refused = Refused(9, csn(1, 2), "t", '{"k":"a"}', "check", "no")
    intake = taken(*said(hello("other"), refused))

    assert [outcome for _, outcome in intake.events] == [
        ControlOutcome.TAKEN,
        ControlOutcome.ELSEWHERE,
    ]
    assert not intake.refused.of(1)


def test_a_replica_that_comes_from_another_hub_gets_everything() -> None:
    """Neither its covers nor its RUV tell what it lacks, own rows included."""
    moved = hello("a1", covers=0, of="other")
    intake = taken(*said(hello("other")), *said(moved, session="t", begins=1))

    agreement = intake.agreements["a1"]
    assert agreement.status is AgreementStatus.RESYNC
    assert agreement.is_full
    assert (agreement.acked_covers, agreement.acked_ruv) == (0, NOTHING_KNOWN)
    (floor,) = intake.replicas[1].floors
    assert (floor.hub_epoch, floor.offset) == (5, 1)


def test_a_replica_that_comes_back_unmoved_gets_what_it_lacks() -> None:
    """Its position is this hub's still: it applied nothing of the other one."""
    back = replace(hello("a1", covers=3, ruv=Ruv("g").with_csn(csn(5, 2))), generation=1)
    intake = taken(*said(hello("other")), *said(back, session="t", begins=1))

    agreement = intake.agreements["a1"]
    assert (agreement.status, agreement.is_full) == (AgreementStatus.RESYNC, False)
    assert agreement.acked_covers == 3


def test_a_hub_without_an_agreement_to_a_replica_reads_it_along() -> None:
    """Its updates are another hub's: what it acknowledges proves nothing of this one's state."""
    topology = Topology({"t": T}, {"a2": RULES.subscriptions["a2"]})
    intake = Intake(fresh_state(4), topology)
    for received in said(hello("other"), Applied(5, 600, 9, KNOWN)):
        intake.take(received)

    assert intake.replicas[1].status is ReplicaStatus.LIVE
    assert not intake.quarantined


def test_an_ordered_resync_of_a_replica_elsewhere_waits_for_its_hello() -> None:
    """Its pages would stand in a topic that nobody reads."""
    intake = taken(*said(hello("other")))

    resync(intake, ResyncOrder("a1", is_full=True))
    assert intake.agreements["a1"].status_text == ELSEWHERE
    pause(intake, "a1")
    resync(intake, ResyncOrder("a1"))
    assert intake.agreements["a1"].status_text == ELSEWHERE
    assert intake.agreements["a1"].is_full


@examples(200)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=120), st.integers(0, 400))
def test_fewer_steps_never_vouch_for_more(rises: list[int], asked: int) -> None:
    """What is dropped makes what was seen, and what was answered, less: never more."""
    epochs = [sum(rises[: place + 1]) + place for place in range(len(rises))]
    whole = Session("s", 0, (0,), (0,), "other", elsewhere=tuple((e, _to(e)) for e in epochs))
    whole = replace(whole, judged=tuple((e, csn(e + 1, 1)) for e in epochs[:-1]))

    kept = whole.judged_up_to(epochs[-1], csn(epochs[-1] + 1, 1))

    assert max(len(kept.elsewhere), len(kept.judged)) <= KEPT_STEPS
    seen, before = kept.seen_elsewhere(asked), whole.seen_elsewhere(asked)
    assert seen is None or (before is not None and before.covers_all(seen))
    answered = kept.answered_elsewhere(csn(asked + 1, 1))
    assert answered <= max([0, *(e for e in epochs if e <= asked)])
    assert kept.seen_elsewhere(epochs[-1] + 1) == _to(epochs[-1]), "the newest is kept"


def _to(epoch: int) -> Ruv:
    return Ruv("g").with_csn(csn(epoch + 1, 2))
