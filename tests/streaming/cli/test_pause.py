"""Claims about `pause`: what it asks of the hub, what it refuses, what `status` says then."""

import time

import pytest

from checkpoints.reading.reader import open_state
from streaming.core.model.statuses import AwayReason, Stop, StopReason
from streaming.core.state.agreement_state import AgreementState
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.streaming.cli.conftest import Slackwater

IN_SYNC = agreement("to-b", 2, 3, ruv(r1=1))


def now_ms() -> int:
    """The clock of a hub that runs."""
    return round(time.time() * 1000)


def asked(state: WrittenState) -> list[tuple[str, str]]:
    """The commands that wait for the hub."""
    return [(c["command"], c["argument"]) for c in open_state(state.root).commands()]


def commit(state: WrittenState, *agreements: AgreementState) -> None:
    """Commit hub epoch 3, with two replicas that are heard."""
    replicas = [replica(rid, covers=3, seen_ms=now_ms()) for rid in (1, 2)]
    state.commit(1, 3, ruv(r1=1), replicas, agreements, at_ms=now_ms())


def test_pause_waits_for_the_hub(slackwater: Slackwater, state: WrittenState) -> None:
    """One writer decides; the answer names what ends the pause."""
    commit(state, IN_SYNC)

    answer = slackwater("pause", "to-b")

    assert (answer.code, asked(state)) == (0, [("pause", "to-b")])
    assert answer.out.splitlines() == [
        "pause to-b: command 1; a running hub executes it with its next batch",
        "then b is sent nothing until `slackwater resync to-b`",
    ]
    assert slackwater("pause", "to-b", "--json").facts == {
        "command": "pause",
        "agreement": "to-b",
        "number": 1,
    }


@pytest.mark.parametrize(
    ("known", "code", "said"),
    [
        (IN_SYNC.away(AwayReason.PAUSED, 1), 1, "paused already: `slackwater resync to-b` ends it"),
        (IN_SYNC.refused("t"), 1, "to-b is refused: t: it is sent nothing until"),
        (IN_SYNC.stopped(Stop(StopReason.HUB_BEHIND)), 1, "to-b is hub_behind: its database has"),
        (agreement("to-z", 2, 3, ruv()), 1, "the hub does not know agreement to-b yet"),
    ],
)
def test_who_is_sent_nothing_is_not_paused(
    slackwater: Slackwater, state: WrittenState, known: AgreementState, code: int, said: str
) -> None:
    """The hub would count the command and do nothing."""
    commit(state, known)

    answer = slackwater("pause", "to-b")

    assert (answer.code, asked(state)) == (code, [])
    assert said in answer.err
    assert slackwater("pause", "to-y").code == 2


def test_a_silent_one_can_be_paused(slackwater: Slackwater, state: WrittenState) -> None:
    """Its next record brings it back; a pause lasts until an operator ends it."""
    commit(state, IN_SYNC.away(AwayReason.SILENT, 1))

    assert slackwater("pause", "to-b").code == 0


@pytest.mark.parametrize(
    ("why", "remedy"),
    [
        (AwayReason.PAUSED, "an operator paused it: `slackwater resync to-b` brings it what"),
        (AwayReason.SILENT, "start its agent, or see that agent's log: as soon as it answers"),
    ],
)
def test_status_says_once_who_is_away_and_what_to_do(
    slackwater: Slackwater, state: WrittenState, why: AwayReason, remedy: str
) -> None:
    """A consumer that is silent is not heard either: that is one problem, not two."""
    seen_ms = now_ms() - (0 if why is AwayReason.PAUSED else 600_000)
    replicas = [replica(1, covers=3, seen_ms=now_ms()), replica(2, covers=3, seen_ms=seen_ms)]
    known = [agreement("to-a", 1, 3, ruv(r1=1)), IN_SYNC.away(why, now_ms())]
    state.commit(1, 3, ruv(r1=1), replicas, known, at_ms=now_ms())

    answer = slackwater("status", "--json")

    assert answer.code == 1
    (problem,) = answer.facts["problems"]
    assert problem["what"] == f"b is sent nothing: agreement to-b is change_tracking: {why}"
    assert problem["remedy"].startswith(remedy)
    one = {each["name"]: each for each in answer.facts["agreements"]}["to-b"]
    assert (one["state"], one["level"]) == (f"change_tracking: {why}", False)
    assert (one["resync"]["away"], one["remedy"]) == (why, problem["remedy"])
