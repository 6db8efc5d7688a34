"""Claims about `resume`: what it asks of the hub, and what it refuses beforehand."""

import pytest

from checkpoints.reading.reader import open_state
from streaming.core.state.agreement_state import AgreementState
from tests.checkpoints.written_state import WrittenState, replica, ruv
from tests.streaming.cli.conftest import Slackwater


def asked(state: WrittenState) -> list[tuple[str, str]]:
    """The commands that wait for the hub."""
    return [(c["command"], c["argument"]) for c in open_state(state.root).commands()]


def commit(state: WrittenState, agreement: AgreementState) -> None:
    """A state with two replicas and this agreement."""
    state.commit(1, 1, ruv(r1=1), [replica(1), replica(2)], [agreement])


def test_resume_waits_for_the_hub(slackwater: Slackwater, state: WrittenState) -> None:
    """One writer decides; status names the command with the agreement's name."""
    commit(state, AgreementState("to-a", 1).refused("accounts"))

    status = slackwater("status", "--json").facts
    answer = slackwater("resume", "to-a")

    problem = next(p for p in status["problems"] if "is sent nothing" in p["what"])
    assert problem["what"] == "a is sent nothing: agreement to-a is refused: accounts"
    assert "`slackwater resume to-a`" in problem["remedy"]
    assert (answer.code, asked(state)) == (0, [("resume", "to-a")])
    assert "command 1" in answer.out


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [("to-a", 1, "to-a is waiting_for_hello"), ("to-z", 2, "there is no agreement 'to-z'")],
)
def test_what_has_not_stopped_is_refused(
    slackwater: Slackwater, state: WrittenState, name: str, code: int, said: str
) -> None:
    """A name with a typing error must not wait in the hub's list for ever."""
    commit(state, AgreementState("to-a", 1))

    answer = slackwater("resume", name)

    assert (answer.code, asked(state)) == (code, [])
    assert said in answer.err
