"""What stands behind a stop: it is left unread, until its replica starts anew."""

from dataclasses import replace

import pytest

from streaming.core.batch.sending import stop_answers
from streaming.core.intake.intake import Intake
from streaming.core.model.row import Floor
from streaming.core.model.ruv import Element, Ruv
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus
from streaming.core.records.record import (
    Commit,
    Heartbeat,
    Hello,
    PublishedSchema,
    Reason,
    ReceivedRecord,
    Record,
)
from streaming.core.state.hub_state import HubState
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import Speaker, fresh_state, intake_of, numbers, reasons

MANY = 100
ANOTHER = Ruv("another")


def state_of(intake: Intake) -> HubState:
    """The state after the intake, agreements and replicas only."""
    return replace(
        intake.state, replicas=intake.replica_states(), agreements=dict(intake.agreements)
    )


def anew(speaker: Speaker, epoch: int = 9) -> list[ReceivedRecord]:
    """A hello of a database that was emptied."""
    speaker.sessions += 1
    speaker.session = f"{speaker.rid}-{speaker.sessions}"
    return speaker.send(Hello(epoch, 0, 0, Ruv(), None, lost=False, reinit=True))


def stopped(speaker: Speaker) -> Intake:
    """A replica that wrote changes 8 and 9, and was stopped by a hello of another data set."""
    behind = [*speaker.hello(), *speaker.send(change(8, opno=1), change(9, opno=2))]
    intake = intake_of([*behind, *speaker.hello(ruv=ANOTHER)])
    intake.leave_unread(MANY)
    return intake


def test_an_ordinary_hello_does_not_free_a_stopped_replica() -> None:
    """Its file may be another one by now, or the same one again."""
    speaker = Speaker()
    before = stopped(speaker)

    intake = intake_of([*speaker.hello(), *speaker.send(change(10))], state_of(before))
    intake.leave_unread(MANY)

    replica = intake.replicas[1]
    assert (replica.status, replica.stop_offset) == (ReplicaStatus.OTHER_REPLICAGENERATION, 3)
    assert (numbers(intake), intake.quarantined) == ([], [])


def test_every_session_of_a_stopped_replica_is_told_once() -> None:
    """An agent that is started again must not wait in silence; a heartbeat needs no answer."""
    speaker = Speaker()
    first = state_of(stopped(speaker))
    again = intake_of(speaker.hello(), first)
    again.leave_unread(MANY)
    second = state_of(again)
    more = intake_of([*speaker.received[4:], *speaker.send(Heartbeat(3))], second)
    more.leave_unread(MANY)

    assert [(one.agreement, one.session) for one in stop_answers(fresh_state(), first)] == [
        ("a1", "1-2")
    ]
    assert [one.session for one in stop_answers(first, second)] == ["1-3"]
    assert stop_answers(second, state_of(more)) == []
    (answer,) = stop_answers(None, second)
    assert answer.state == "other_replicageneration"
    assert "slackwater reinit" in answer.remedy


def test_a_hello_of_an_emptied_database_frees_its_replica() -> None:
    """It is sent everything, its own changes included; no session of its past counts."""
    speaker = Speaker()
    before = stopped(speaker)
    control = Heartbeat(2), PublishedSchema("digest", "{}")
    unread = [*speaker.received[3:], *speaker.send(change(10, opno=3), *control)]
    known = Ruv("g", {1: Element(csn(8, 1), csn(9, 1))})
    state = replace(state_of(before), ruvs={"default": known}, hub_epoch=5)

    intake = intake_of([*unread, *anew(speaker), *speaker.send(change(20, opno=4))], state)

    replica, agreement = intake.replica_states()[1], intake.agreements["a1"]
    assert (replica.status, replica.detail, replica.stop_offset) == (ReplicaStatus.LIVE, "", None)
    assert [session.id for session in replica.sessions] == ["1-3"]
    assert replica.floors == (Floor(6, 7, "", csn(9, 1)),)
    assert (agreement.status, agreement.sent_covers) == (AgreementStatus.CATCHING_UP, 0)
    assert [(kept.offset, kept.reason) for kept in intake.quarantined] == [(4, Reason.SESSION)]
    assert "other_replicageneration" in intake.quarantined[0].detail
    assert numbers(intake) == [20]
    assert replica.opno == 4


def test_no_opno_of_a_database_that_is_gone_is_waited_for() -> None:
    """Its journal is gone too, so nobody would ever fill the hole."""
    speaker = Speaker()
    records = [*speaker.hello(), *speaker.send(change(8, opno=1), change(9, opno=3))]

    intake = intake_of([*records, *anew(speaker), *speaker.send(change(20, opno=4))])

    assert numbers(intake) == [8, 9, 20]


def test_a_second_hello_of_an_emptied_database_keeps_the_floor_of_the_first() -> None:
    """What it wrote between the two was written without its own past as well."""
    speaker = Speaker()
    records = [*speaker.hello(), *speaker.send(change(8))]

    intake = intake_of([*records, *anew(speaker), *speaker.send(change(9)), *anew(speaker)])

    assert [floor.offset for floor in intake.replicas[1].floors] == [2, 4]


def test_a_repeated_hello_of_an_emptied_database_frees_nobody() -> None:
    """The broker delivers a record twice; meanwhile the replica was stopped."""
    speaker = Speaker()
    first = anew(speaker)
    intake = intake_of([*first, *speaker.hello(ruv=ANOTHER)])

    intake.take(replace(first[0], offset=2))

    assert intake.replicas[1].status is ReplicaStatus.OTHER_REPLICAGENERATION


def test_more_than_fits_behind_a_stop_goes_to_quarantine() -> None:
    """Otherwise a hello that starts anew might stand too far behind to be ever read."""
    speaker = Speaker()
    before = stopped(speaker)
    unread = [*speaker.received[3:], *speaker.send(change(10), change(11))]

    intake = intake_of(unread, state_of(before))
    intake.leave_unread(len(unread))

    assert reasons(intake) == [Reason.SESSION] * 2
    assert intake.replicas[1].is_stopped
    assert intake.replicas[1].stop_offset == 6


REST: dict[str, tuple[list[Record], str]] = {
    "change": ([change(10, tx=8), Commit(csn(8, 1))], "was ended: hello"),
    "commit": ([Commit(csn(8, 1))], "was ended by the hello before its commit came"),
}


@pytest.mark.parametrize(("rest", "detail"), REST.values(), ids=REST.keys())
def test_a_transaction_that_is_given_up_in_part_is_ended(rest: list[Record], detail: str) -> None:
    """Its rest may stand behind the hello: it is no transaction of its own, and is kept once."""
    speaker = Speaker()
    start = speaker.hello()
    begun = [*speaker.hello(ruv=ANOTHER), *speaker.send(change(8, tx=8), change(9))]

    intake = intake_of([*start, *begun, *anew(speaker), *speaker.send(*rest)])

    assert numbers(intake) == []
    assert reasons(intake) == [Reason.SESSION, Reason.SESSION, Reason.ENDED]
    assert intake.quarantined[-1].detail == f"transaction {csn(8, 1)} {detail}"
    assert intake.open.ended[csn(8, 1), 1].reason == Reason.ENDED


def test_what_is_committed_and_waits_is_not_given_up() -> None:
    """A change of it that comes too late is, and an opno of that is not waited for."""
    speaker = Speaker()
    waits = [*speaker.hello(), *speaker.send(change(8, tx=8, opno=2), Commit(csn(8, 1)))]
    late = [*speaker.hello(ruv=ANOTHER), *speaker.send(change(9, tx=8, opno=1))]

    intake = intake_of([*waits, *late, *anew(speaker)])

    assert numbers(intake) == [8]
    assert reasons(intake) == [Reason.SESSION]
    assert not intake.open.ended


def test_a_floor_gives_back_what_is_open_too() -> None:
    """A database that was put back may lack what the hub only has announced."""
    speaker, other = Speaker(), Speaker(rid=2)
    others = [*other.hello(), *other.send(change(90, rid=2, tx=90))]
    own = [*speaker.hello(), *speaker.send(change(8), change(9, tx=9), Commit(csn(9, 1)))]
    opened = speaker.send(change(12, opno=9, tx=12), Commit(csn(12, 1)))

    intake = intake_of([*others, *own, *opened, *speaker.hello(own=csn(7, 1), lost=True)])

    (floor,) = intake.replicas[1].floors
    assert (floor.after, floor.upto) == (csn(7, 1), csn(12, 1))
