"""Goodbyes: an agent that has ended is known to have ended until the next hello."""

from dataclasses import replace

from streaming.core.model.statuses import AwayReason
from streaming.core.records.arrival import ControlOutcome
from streaming.core.records.record import Goodbye, Heartbeat
from streaming.core.state.replica_state import AgentEnd
from tests.streaming.core.intake.speaker import Speaker, fresh_state, intake_of


def test_a_goodbye_ends_what_is_known_of_a_replica() -> None:
    """Its record's time, and what it left unpublished, stay with the replica."""
    speaker = Speaker()

    intake = intake_of([*speaker.hello(), *speaker.send(Goodbye(4, 2))])

    assert intake.replicas[1].ended == AgentEnd(1_001, 2)
    assert intake.replicas[1].epoch == 4
    assert intake.events[-1][1] is ControlOutcome.TAKEN
    assert intake.quarantined == []


def test_the_next_hello_ends_a_goodbye() -> None:
    """The agent runs again."""
    speaker = Speaker()

    intake = intake_of([*speaker.hello(), *speaker.send(Goodbye(0, 0)), *speaker.hello()])

    assert intake.replicas[1].ended is None


def test_a_goodbye_behind_a_newer_hello_is_ignored() -> None:
    """An old agent that ends late says nothing of the one that took its place."""
    speaker = Speaker()
    told = [*speaker.hello(), *speaker.hello()]

    intake = intake_of([*told, speaker.quote(Goodbye(0, 7), session="1-1")])

    assert intake.replicas[1].ended is None
    assert intake.events[-1][1] is ControlOutcome.UNKNOWN
    assert intake.quarantined == []


def test_a_goodbye_that_comes_again_changes_nothing() -> None:
    """The broker may deliver it twice; the first one has the true time."""
    speaker = Speaker()
    told = [*speaker.hello(), *speaker.send(Goodbye(0, 7))]

    intake = intake_of([*told, *speaker.send(Goodbye(0, 7))])

    assert intake.replicas[1].ended == AgentEnd(1_001, 7)
    assert intake.events[-1][1] is ControlOutcome.DUPLICATE


def test_what_stands_behind_a_goodbye_does_not_take_it_back() -> None:
    """The next agent publishes the rest of a transaction in the session that began it."""
    speaker = Speaker()

    intake = intake_of([*speaker.hello(), *speaker.send(Goodbye(0, 1), Heartbeat(0))])

    assert intake.replicas[1].ended is not None


def test_a_goodbye_does_not_bring_a_silent_consumer_back() -> None:
    """A resync would begin for an agent that has just ended."""
    speaker = Speaker()
    known = intake_of(speaker.hello())
    away = known.agreements["a1"].away(AwayReason.SILENT, 1)
    state = replace(
        fresh_state(),
        replicas=dict(known.replicas),
        agreements={**known.agreements, "a1": away},
    )

    intake = intake_of(speaker.send(Goodbye(0, 0)), state)

    assert intake.agreements["a1"].detail == AwayReason.SILENT
    assert intake.replicas[1].ended is not None
