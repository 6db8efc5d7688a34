"""Claims about which batches say nothing new."""

from dataclasses import fields, replace
from typing import Any

import pytest

from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.state.agreement_state import AgreementState, SendRange
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.tracking.resync import CoveredPosition

REPLICA = ReplicaState(1, seen_ms=1_000)
AGREEMENT = AgreementState("to-a", 1)
SENT = SendRange(0, 1, 1, NOTHING_KNOWN, CoveredPosition(0, NOTHING_KNOWN))
BEFORE = HubState(
    1, "g", 7, replicas={1: REPLICA}, agreements={"to-a": AGREEMENT}, to_send={"to-a": SENT}
)
AFTER = replace(BEFORE, batch=8, to_send={})
OF_HUB = {field.name for field in fields(HubState)} - {"batch", "replicas"}
ANOTHER: Any = ("what no field has",)


def test_a_replica_that_is_heard_again_says_nothing_new() -> None:
    """When it was heard is no fact of the data, and changes with each record."""
    heard = replace(AFTER, replicas={1: replace(REPLICA, seen_ms=2_000)})

    assert heard.says_nothing_new(BEFORE)
    assert AFTER.says_nothing_new(BEFORE)


@pytest.mark.parametrize("field", sorted(OF_HUB))
def test_anything_else_of_the_state_is_new(field: str) -> None:
    """Who adds a fact to the state need not think of heartbeats."""
    assert not replace(AFTER, **{field: ANOTHER}).says_nothing_new(BEFORE)


@pytest.mark.parametrize("field", [f.name for f in fields(ReplicaState) if f.name != "seen_ms"])
def test_anything_else_of_a_replica_is_new(field: str) -> None:
    """What a heartbeat brings besides its time is looked at by the next start only if committed."""
    other = replace(REPLICA, **{field: ANOTHER})

    assert not replace(AFTER, replicas={1: other}).says_nothing_new(BEFORE)


@pytest.mark.parametrize("field", [f.name for f in fields(AgreementState)])
def test_anything_of_an_agreement_is_new(field: str) -> None:
    """A consumer that comes back, or has waited for too long, changes what is sent."""
    other = replace(AGREEMENT, **{field: ANOTHER})

    assert not replace(AFTER, agreements={"to-a": other}).says_nothing_new(BEFORE)
