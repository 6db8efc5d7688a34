"""Claims about who is sent packets, and what of its own records a packet tells it."""

from dataclasses import replace

import pytest

from streaming.core.batch.exporting import PacketSending, packets_of
from streaming.core.matrix.packets import PacketFeed, Place
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus, Stop, StopReason
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.topology import Subscription

FED = AgreementState("to-b", 2, AgreementStatus.IN_SYNC, feed=PacketFeed())
BY_CLOCK = Subscription("to-b", 2, frozenset("t"), packet_every_ms=60_000)
LIVE = ReplicaState(2, ReplicaStatus.LIVE)
PLACES = {"to-b": Place("box", 7)}


def test_a_packet_tells_up_to_where_the_replica_was_read() -> None:
    """So its outbox lets go of what the hub has."""
    found = packets_of(FED, BY_CLOCK, {2: LIVE}, PLACES)

    assert found == PacketSending(PacketFeed(), 60_000, PLACES["to-b"])


def test_a_stopped_replica_is_told_nothing_of_its_records() -> None:
    """They are not read, and it must keep them."""
    stopped = LIVE.stopped(Stop(StopReason.UNSUPPORTED, "snapshot"), 7)

    found = packets_of(FED, BY_CLOCK, {2: stopped}, PLACES)

    assert found == PacketSending(PacketFeed(), 60_000, None)


@pytest.mark.parametrize(
    ("agreement", "subscription"),
    [
        pytest.param(replace(FED, feed=None), BY_CLOCK, id="it was never by packets"),
        pytest.param(FED, replace(BY_CLOCK, packet_every_ms=None), id="it is by Kafka again"),
        pytest.param(FED, None, id="it is configured no more"),
        pytest.param(FED.retired(), BY_CLOCK, id="it is retired"),
    ],
)
def test_whoever_is_not_by_packets_is_sent_none(
    agreement: AgreementState, subscription: Subscription | None
) -> None:
    """The state keeps its feed, for the numbers of packets only grow."""
    assert packets_of(agreement, subscription, {2: LIVE}, PLACES) is None
