"""Claims about `abort`: what it asks of the hub, and what it refuses beforehand."""

import pytest

from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from tests.checkpoints.written_state import WrittenState, change_row, ruv
from tests.harness.builders import csn
from tests.streaming.cli.conftest import Slackwater


def row(number: int, action: str, reason: str | None = None) -> dict[str, object]:
    """What `pending` says of a change of the transaction of CSN 2."""
    named = {"rid": 1, "csn": csn(number, 1), "prim_csn": csn(2, 1)}
    return {"batch": 1, "place": number, "action": action, "reason": reason, **named}


def asked(state: WrittenState) -> list[tuple[str, str]]:
    """The commands that wait for the hub."""
    return [(c["command"], c["argument"]) for c in open_state(state.root).commands()]


@pytest.mark.parametrize("number", [2, 3])
def test_abort_waits_for_the_hub(slackwater: Slackwater, state: WrittenState, number: int) -> None:
    """By the prim_csn or a CSN of it: one writer decides, the command line only asks."""
    state.commit(1, 1, ruv(r1=1))
    state.append(TableName.PENDING, row(3, "pending"))

    answer = slackwater("abort", csn(number, 1))

    assert answer.code == 0
    assert "command 1" in answer.out
    assert asked(state) == [("abort", csn(number, 1))]
    numbers = slackwater("abort", csn(number, 1), "--json").facts["numbers"]
    assert numbers == {csn(number, 1): 1}


REFUSED = {
    "it waits": (row(3, "waiting"), "is committed and waits"),
    "it was ended": (row(3, "ended", "hello"), "has ended already: hello"),
    "it went on": (row(3, "gone"), "is judged already"),
    "it is another": (row(4, "pending"), "is not an open transaction"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_open_is_refused_beforehand(
    slackwater: Slackwater, state: WrittenState, case: tuple[dict[str, object], str]
) -> None:
    """A command without effect must not look like one with."""
    pending, complaint = case
    state.commit(1, 1, ruv(r1=1))
    state.append(TableName.PENDING, pending)

    answer = slackwater("abort", csn(3, 1))

    assert answer.code == (2 if complaint == "is not an open transaction" else 1)
    assert complaint in answer.err
    assert asked(state) == []


def test_a_judged_change_is_refused_beforehand(slackwater: Slackwater, state: WrittenState) -> None:
    """What is committed holds, also what was never pending at the end of a batch."""
    state.commit(1, 1, ruv(r1=1))
    state.append(TableName.CHANGELOG, change_row(1, 1, 0, csn(1, 1)))

    answer = slackwater("abort", csn(1, 1))

    assert (answer.code, asked(state)) == (1, [])
    assert "is judged already" in answer.err


def test_what_is_no_csn_is_wrong_usage(slackwater: Slackwater, state: WrittenState) -> None:
    """A quarantine id, for instance."""
    state.commit(1, 1, ruv(r1=1))

    assert slackwater("abort", "1-7").code == 2
