"""Claims about `recover`: what it asks of the hub, and what it refuses beforehand."""

from dataclasses import replace

import pytest

from checkpoints.reading.reader import open_state
from streaming.core.intake.input_lost import RECREATED
from streaming.core.model.statuses import ReplicaStatus, Stop, StopReason
from streaming.core.state.replica_state import ReplicaState
from tests.checkpoints.written_state import WrittenState, replica, ruv
from tests.streaming.cli.conftest import Slackwater

LOST = replica(1).stopped(Stop(StopReason.INPUT_LOST, RECREATED), 0)


def asked(state: WrittenState) -> list[tuple[str, str]]:
    """The commands that wait for the hub."""
    return [(c["command"], c["argument"]) for c in open_state(state.root).commands()]


def test_recover_waits_for_the_hub(slackwater: Slackwater, state: WrittenState) -> None:
    """One writer decides; the command line says what comes next."""
    state.commit(1, 1, ruv(r1=1), [LOST])

    answer = slackwater("recover", "a")

    assert answer.code == 0
    assert "command 1" in answer.out
    assert "start the agent of a" in answer.out
    assert asked(state) == [("recover", "1")]
    assert slackwater("recover", "a", "--json").facts["number"] == 1


def test_status_names_the_remedy_first(slackwater: Slackwater, state: WrittenState) -> None:
    """An operator copies the commands from there."""
    state.commit(1, 1, ruv(r1=1), [LOST])

    answer = slackwater("status", "--json")

    problem = next(p for p in answer.facts["problems"] if "is stopped" in p["what"])
    assert problem["what"] == f"a is stopped: input_lost: {RECREATED}"
    assert "`slackwater recover a`" in problem["remedy"]
    assert "start its agent" in problem["remedy"]


@pytest.mark.parametrize(
    "standing", [replica(1), replace(LOST, status=ReplicaStatus.RECOVERED, detail="")]
)
def test_a_replica_that_lost_no_input_is_refused(
    slackwater: Slackwater, state: WrittenState, standing: ReplicaState
) -> None:
    """It would end its open transactions for nothing."""
    state.commit(1, 1, ruv(r1=1), [standing])

    answer = slackwater("recover", "a")

    assert (answer.code, asked(state)) == (1, [])
    assert f"a is {standing.status_text}: no input of it is lost" in answer.err


def test_an_unknown_replica_is_wrong_usage(slackwater: Slackwater, state: WrittenState) -> None:
    """A typing error must not wait for the hub."""
    state.commit(1, 1, ruv(r1=1), [LOST])

    assert slackwater("recover", "nobody").code == 2
