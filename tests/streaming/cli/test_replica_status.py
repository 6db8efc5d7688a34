"""Claims about `status --replica`, from written state.

tests/e2e/test_epochs_in_flight.py has a real run.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from streaming.core.state.reflection import Session
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.streaming.cli.conftest import Slackwater

NOBODY = "127.0.0.1:1"
"""No broker listens there."""


def test_without_a_broker_the_way_back_is_folded_into_sent(
    slackwater: Slackwater, state: WrittenState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken broker is when an operator asks: what the tables know is told, and what is not."""
    monkeypatch.setenv("SLACKWATER_KAFKA__BOOTSTRAP_SERVERS", NOBODY)
    b = replica(2, sessions=(Session("session-2", 4, (4, 7), (0, 22)),))
    to_b = replace(agreement("to-b", 2, 22, ruv(r1=1)), sent_covers=36, scanned=38)
    state.commit(1, 40, ruv(r1=1), [replica(1), b], [to_b])

    shown = slackwater("status", "--replica", "b")
    facts = slackwater("status", "--replica", "b", "--json").facts

    assert shown.code == 0
    counts = "22, reflected in its epoch 7; counts for its changes from epoch 8 on"
    assert shown.out.splitlines()[1:6] == [
        "current hub epoch       40",
        f"max replicated epoch    {counts}",
        "out, not sent yet       37-40; nothing for it in 37-38",
        "out, sent, not applied  23-36",
        "back, not read yet      none known; epochs that it has applied may be listed under sent",
    ]
    assert f"Kafka at {NOBODY} did not answer" in shown.out
    assert "Traceback" not in shown.out + shown.err
    assert (facts["unsent"], facts["nothing_for_it"], facts["sent"], facts["unread"]) == (
        {"first": 37, "last": 40},
        {"first": 37, "last": 38},
        {"first": 23, "last": 36},
        None,
    )
    assert (facts["hub_epoch"], facts["mre"]) == (40, 22)
    assert (facts["mre_epoch"], facts["mre_counts_from"]) == (7, 8)
    assert NOBODY in facts["doubt"]


def test_a_replica_that_never_spoke_and_is_sent_nothing(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """All of it is still to come, and the reason is told; no broker is asked."""
    text = config_file.read_text().partition('[[agreements]]\nname = "to-b"')[0]
    config_file.write_text(text)
    state.commit(1, 3, ruv(r1=1), [replica(1)])

    shown = slackwater("status", "--replica", "b").out

    assert "max replicated epoch    0: it has not sent a hello" in shown
    assert "out, not sent yet       1-3; no agreement sends to it" in shown
    assert "back, not read yet      none" in shown


def test_an_unknown_replica_is_wrong_usage(slackwater: Slackwater, state: WrittenState) -> None:
    """A slip of the pen is told with the names that there are."""
    state.commit(1, 1, ruv(r1=1))

    answer = slackwater("status", "--replica", "c")

    assert answer.code == 2
    assert "there is no replica 'c': use one of a, b" in answer.err


def test_before_the_first_commit_nothing_is_in_flight(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """The hub has just been started."""
    state.plan(1)

    answer = slackwater("status", "--replica", "b")

    assert answer.code == 2
    assert "no batch is committed" in answer.err
