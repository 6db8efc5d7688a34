"""Lost input: what counts as lost, and what an operator's `recover` does about it."""

from dataclasses import replace

import pytest

from streaming.core.batch.sending import stop_answers
from streaming.core.intake import orders
from streaming.core.intake.input_lost import (
    DELETED,
    GONE,
    RECREATED,
    InputLoss,
    TopicFacts,
    heads,
    losses,
)
from streaming.core.intake.intake import Intake
from streaming.core.model.row import Floor
from streaming.core.model.ruv import Ruv
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus
from streaming.core.records.record import Heartbeat, Hello, Reason
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import (
    Speaker,
    fresh_state,
    intake_of,
    intake_of_session,
    numbers,
    reasons,
)
from tests.streaming.core.intake.test_stopped import anew, state_of

LOSS = InputLoss(1, RECREATED, 0)


@pytest.mark.parametrize(
    ("now", "detail"),
    [
        (TopicFacts("id", 0, 5), None),
        (TopicFacts("id", 5, 5), None),
        (TopicFacts("id", 5, 9), None),
        (TopicFacts("id", 8, 9), "offsets 5 to 7 of its topic were deleted before they were read"),
        (TopicFacts("id", 0, 3), "its topic ends at offset 3, and the hub has read up to 5"),
        (TopicFacts("other", 0, 9), RECREATED),
        (GONE, DELETED),
    ],
)
def test_input_is_lost_where_the_hub_cannot_go_on(now: TopicFacts, detail: str | None) -> None:
    """Retention below its place is no loss; another topic of the same name is one."""
    found = losses({"t": "id"}, {"t": 5}, {"t": now}, ["t"])

    assert {topic: loss.detail for topic, loss in found.items()} == (
        {} if detail is None else {"t": detail}
    )


def test_a_topic_that_is_only_written_is_lost_by_its_id_alone() -> None:
    """What its consumer has not read the consumer finds missing."""
    now = {"u": TopicFacts("id", 8, 9), "v": TopicFacts("other", 0, 0)}

    found = losses({"u": "id", "v": "id"}, {}, now, ["u", "v", "unknown"])

    assert {topic: loss.detail for topic, loss in found.items()} == {"v": RECREATED}


def test_an_earlier_look_does_not_tell_where_a_topic_ends() -> None:
    """The hub reads on while it is on its way."""
    now = heads({"t": TopicFacts("id", 0, 3)})

    assert losses({"t": "id"}, {"t": 5}, now, ["t"]) == {}


def lost() -> tuple[Speaker, Intake]:
    """A replica with an open transaction and a change behind a hole, which lost the record 3."""
    speaker = Speaker()
    records = [
        *speaker.hello(),
        *speaker.send(change(8, tx=8, opno=1), change(9, opno=3)),
    ]
    before = state_of(intake_of(records))
    opened = intake_of(records).open
    intake = intake_of([], replace(before, open=opened))
    orders.record_lost_input(intake, LOSS)
    return speaker, intake


def test_a_replica_of_which_input_is_lost_stops_and_is_told() -> None:
    """It alone; what it had announced stays as it is."""
    _, intake = lost()

    assert intake.replicas[1].status_text == f"input_lost: {RECREATED}"
    assert intake.replicas[1].stop_offset == 0
    assert intake.agreements["a1"].status is AgreementStatus.INPUT_LOST
    assert not intake.replicas[2].is_stopped
    assert numbers(intake) == []
    (answer,) = stop_answers(fresh_state(), state_of(intake))
    assert (answer.session, answer.state) == ("1-1", f"input_lost: {RECREATED}")
    assert "slackwater recover" in answer.remedy


def test_a_database_that_is_made_anew_before_recover_is_stopped_too() -> None:
    """The operator may still put the lost records back from elsewhere: nothing is given up yet."""
    speaker, before = lost()

    intake = intake_of(anew(speaker), state_of(before))
    intake.leave_unread(100)

    assert intake.replicas[1].status is ReplicaStatus.INPUT_LOST
    assert intake.agreements["a1"].session == "1-2"


def test_a_session_whose_hello_was_lost_is_told_by_what_it_publishes() -> None:
    """Its agent runs on otherwise, and nobody reads what it publishes."""
    speaker, before = lost()
    speaker.session = "1-unknown"

    intake = intake_of(speaker.send(Heartbeat(4)), state_of(before))
    intake.leave_unread(100)

    (answer,) = stop_answers(state_of(before), state_of(intake))
    assert answer.session == "1-unknown"


def test_recover_ends_what_is_open_and_waits_for_no_opno() -> None:
    """What was committed and waited for the lost record is judged; nothing else is guessed."""
    _, intake = lost()
    intake.replicas[1] = replace(intake.replicas[1], floors=(Floor(1, 700, "", ""),))

    orders.recover(intake, 1)

    assert numbers(intake) == [9]
    assert [context for context, _, _ in intake.ended] == [(csn(8, 1), 1)]
    assert intake.replicas[1].status_text == "recovered"
    assert (intake.counts["input_lost"], intake.counts["recovered"]) == (1, 1)
    assert intake.replicas[1].floors == ()
    assert intake.agreements["a1"].status is AgreementStatus.RECOVERED


def test_a_recovered_replica_starts_with_any_hello_and_a_full_copy() -> None:
    """Its journal went on while nobody read it; what was lost is in its database only."""
    speaker, before = lost()
    orders.recover(before, 1)
    state = replace(state_of(before), open=before.open, hub_epoch=5)
    unread = speaker.send(change(20, opno=6))

    intake = intake_of([*unread, *speaker.hello(), *speaker.send(change(30, opno=9))], state)
    intake.take(speaker.quote(change(31, opno=11), 0))

    assert intake.replicas[1].status is ReplicaStatus.LIVE
    assert (reasons(intake), numbers(intake)) == ([Reason.SESSION], [30])
    assert intake.replica_states()[1].opno == 9
    assert [floor.hub_epoch for floor in intake.replicas[1].floors] == [6]
    agreement = intake.agreements["a1"]
    assert (agreement.status, agreement.is_full) == (AgreementStatus.RESYNC, True)
    assert agreement.begins_resync


def test_a_recovered_replica_may_start_with_an_empty_database() -> None:
    """Its operator may prefer that; the copy is the same."""
    speaker, before = lost()
    orders.recover(before, 1)

    intake = intake_of(anew(speaker), state_of(before))

    assert intake.replicas[1].status is ReplicaStatus.LIVE
    assert intake.agreements["a1"].is_full


def test_recover_without_a_loss_does_nothing() -> None:
    """The command line refuses it; the hub may have changed meanwhile."""
    intake = intake_of_session(change(8, tx=8))
    before = dict(intake.replicas)

    orders.recover(intake, 1)
    orders.recover(intake, 77)

    assert intake.replicas == before
    assert intake.counts["unknown_recovers"] == 2


def test_no_opno_that_was_never_published_is_waited_for() -> None:
    """`reinit` forgets the journal, and its agent does not give an opno twice."""
    speaker = Speaker()
    records = [*speaker.hello(), *speaker.send(change(8, opno=1))]

    intake = intake_of([*records, *anew(speaker), *speaker.send(change(20, opno=4))])

    assert numbers(intake) == [8, 20]


def test_what_was_not_acknowledged_is_sent_again() -> None:
    """The consumer may have applied all of it: its `applied` still counts."""
    speaker = Speaker()
    state = state_of(intake_of(speaker.hello()))
    sent = replace(
        state.agreements["a1"], sent_epoch=9, sent_covers=9, scanned=9, acked_covers=4, sent_ms=7
    )
    intake = intake_of([], replace(state, hub_epoch=9, agreements={"a1": sent}))

    orders.publish_again(intake, "a1")
    intake.take(speaker.applied(1, 9)[0])

    agreement = intake.agreements["a1"]
    assert (agreement.scanned, agreement.sent_epoch, agreement.sent_covers) == (4, 4, 9)
    assert agreement.status is AgreementStatus.CATCHING_UP
    assert (agreement.acked_covers, intake.quarantined) == (9, [])


def test_a_consumer_that_waits_for_a_hello_is_sent_nothing_again() -> None:
    """Nothing was sent to it in a session that is known."""
    intake = intake_of([])

    orders.publish_again(intake, "a1")

    assert intake.agreements == intake.state.agreements


def test_a_repeated_reinit_hello_waits_for_no_opno_without_a_number() -> None:
    """A replica that does not number its changes goes on as before."""
    speaker = Speaker()
    hello = Hello(9, 0, 0, Ruv(), None, lost=False, reinit=True)
    speaker.session = "1-1"

    intake = intake_of([*speaker.send(hello), *speaker.send(change(20))])

    assert numbers(intake) == [20]
    assert intake.is_plain_from(1, csn(21, 1), None)
    assert not intake.is_plain_from(1, csn(21, 1), 5)
