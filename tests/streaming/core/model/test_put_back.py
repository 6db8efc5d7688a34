"""Claims about a state that was put back: what proves it, and how the next generation begins."""

from dataclasses import replace

import pytest

from streaming.core.batch.sending import SendingView, plan
from streaming.core.delivery.consumer import Position, SendHello, receive
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus, Stop, StopReason
from streaming.core.records.record import Update
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.restored import SentPosition, is_restored, raised

STATE = HubState(
    1,
    "g",
    hub_epoch=7,
    replicas={1: ReplicaState(1), 2: ReplicaState(2)},
    agreements={
        "a1": AgreementState(
            "a1", 1, AgreementStatus.IN_SYNC, session="s", scanned=7, sent_epoch=7, sent_covers=7
        ),
        "a2": AgreementState("a2", 2),
    },
)
LATER = SentPosition(1, 40)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([], False),
        ([SentPosition(1, 7)], False),
        ([SentPosition(1, 8)], True),
        ([SentPosition(1, 3), SentPosition(2, 1)], True),
    ],
)
def test_a_later_update_proves_it(sent: list[SentPosition], *, expected: bool) -> None:
    """What is sent was committed before; a generation counts its own hub epochs."""
    assert is_restored(STATE, sent) is expected


def test_a_consumer_that_knows_more_proves_it_too() -> None:
    """Its updates topic may have been deleted."""
    behind = ReplicaState(2).stopped(Stop(StopReason.HUB_BEHIND), 5)
    state = replace(STATE, replicas={1: ReplicaState(1), 2: behind})

    assert is_restored(state, [])
    after = raised(state, []).replicas[2]
    assert (after.status, after.stop_offset) == (ReplicaStatus.RECOVERED, 5)


def test_no_number_of_the_lost_history_is_given_again() -> None:
    """A consumer may still apply batches of it."""
    after = raised(STATE, [LATER, SentPosition(1, 12)])

    assert after.generation == 2
    assert after.hub_epoch > LATER.hub_epoch
    assert raised(after, [SentPosition(5, 2)]).generation == 6


@pytest.mark.parametrize("last", [0, 7, LATER.hub_epoch])
def test_whatever_a_consumer_has_it_says_hello(last: int) -> None:
    """By an empty batch of the new generation, which is due at once."""
    state = raised(STATE, [LATER])
    view = SendingView(
        state.hub_epoch, state.hub_epoch, {}, 60_000, nudged=False, marks=lambda *_: []
    )

    found = plan(
        state.agreements["a1"],
        view,
        "main",
        has_items=False,
        page_items=10,
        covers_interval_ms=60_000,
    )

    assert found.to_send is not None
    sent = found.to_send
    batch = Update("a1", 2, "s", sent.to, sent.prev, sent.position.covers, NOTHING_KNOWN, 0, 1, ())
    for answered in (False, True):
        position = Position("s", last, last, generation=1, answered=answered)
        assert isinstance(receive(position, batch), SendHello)


def test_everybody_gets_a_full_copy() -> None:
    """Also who is away, or has not said hello: neither covers nor RUV tells what it lacks."""
    state = raised(STATE, [LATER])

    assert [one.is_full for one in state.agreements.values()] == [True, True]
    assert state.agreements["a2"].status is AgreementStatus.WAITING_FOR_HELLO
    assert state.to_send == {}
