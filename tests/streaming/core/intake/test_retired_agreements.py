"""A consumer whose agreement is retired still says where it is, and is still heard."""

from dataclasses import replace

from streaming.core.intake.intake import Intake
from streaming.core.state.hub_state import HubState
from streaming.core.state.membership import adopted
from streaming.core.state.topology import Topology
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import RULES, Speaker, fresh_state, intake_of, reasons

WITHOUT_A1 = Topology(RULES.tables, {"a2": RULES.subscriptions["a2"]})


def retired(state: HubState) -> HubState:
    """The state when agreement a1 is not configured any more."""
    return adopted(state, WITHOUT_A1, [1, 2])


def test_the_position_follows_the_consumer() -> None:
    """Back in the configuration, sending goes on from what the consumer said last."""
    speaker, state = Speaker(), fresh_state(9)
    sent = replace(state.agreements["a1"], session="1-0", sent_covers=9)
    state = retired(replace(state, agreements={**state.agreements, "a1": sent}))
    intake = Intake(state, WITHOUT_A1)

    for record in [*speaker.hello(3, 4), *speaker.applied(5, 4)]:
        intake.take(record)

    after = intake.agreements["a1"]
    assert reasons(intake) == []
    assert (after.is_retired, after.session, after.sent_covers, after.acked_covers) == (
        True,
        "1-1",
        4,
        4,
    )
    assert intake.replicas[1].mre == 4


def test_a_stop_is_remembered() -> None:
    """Back in the configuration, it is stopped for what its consumer wrote meanwhile."""
    speaker = Speaker()
    intake = Intake(retired(fresh_state()), WITHOUT_A1)

    for record in [*speaker.hello(), *speaker.hello(generation=2)]:
        intake.take(record)

    assert intake.agreements["a1"].status_text == "retired: hub_behind"
    assert intake.agreements["a1"].revived().status_text == "hub_behind"


def test_a_retired_replica_is_not_read() -> None:
    """What was open of it stays open."""
    speaker = Speaker()
    before = intake_of([*speaker.hello(), *speaker.send(change(10, tx=10))])
    state = replace(before.state, replicas=before.replica_states(), open=before.open)
    state = adopted(state, WITHOUT_A1, [2])

    intake = Intake(state, WITHOUT_A1)
    for record in speaker.send(change(11)):
        intake.take(record)

    assert (intake.eligible, list(intake.open.changes)) == ([], [csn(10)])


def test_an_agreement_of_another_name_takes_over_its_consumer() -> None:
    """What the old one sent is no proof that the hub's state was put back."""
    renamed = Topology(RULES.tables, {"new": replace(RULES.subscriptions["a1"], name="new")})
    state = adopted(fresh_state(9), renamed, [1, 2])
    intake = Intake(state, renamed)

    for record in Speaker().hello(3, 9):
        intake.take(record)

    assert not intake.replicas[1].is_stopped
    assert intake.agreements["new"].acked_covers == 9
