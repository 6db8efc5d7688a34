"""The last update in an updates topic, on a real broker."""

from connectors import wire
from connectors.kafka.embedded.broker import Broker
from connectors.kafka.looking import last_updates
from connectors.kafka.topics import ensure_topics
from streaming.core.model.ruv import Ruv
from streaming.core.records.record import Stopped, Update
from streaming.core.state.restored import SentPosition
from tests.harness.topics import TopicEnds

STOPPED = Stopped("b", 1, "s", "unsupported: snapshot", "upgrade the hub")


def update(hub_epoch: int, generation: int = 1) -> bytes:
    """A batch without items."""
    header = Update("b", generation, "s", hub_epoch, 0, hub_epoch, Ruv(), 0, 1, ())
    return wire.update_of(header, b"")


def test_the_last_update_counts_and_what_comes_meanwhile_does_not(
    broker: Broker, topic_prefix: str
) -> None:
    """Another hub may send while this one starts: what it sends then proves nothing."""
    one, other, empty = (f"{topic_prefix}updates.{name}" for name in "abc")
    ensure_topics(broker.bootstrap_servers, {}, [one, other, empty], 1_000)
    with TopicEnds(broker.bootstrap_servers) as ends:
        for value in (update(7), update(3, 2), wire.encode_stopped(STOPPED), b"{", update(9)):
            ends.send(one, "b", value)
        ends.send(other, "b", wire.encode_stopped(STOPPED))

    found = last_updates(broker.bootstrap_servers, {}, {one: 4, other: 1, empty: 0})

    assert found == {one: SentPosition(2, 3)}
    assert SentPosition(2, 3) > SentPosition(1, 7)
