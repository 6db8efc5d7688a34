"""The records after the hub's position in a replica's topic, on a real broker."""

import pytest

from connectors import wire
from connectors.kafka.embedded.broker import Broker
from connectors.kafka.topics import ensure_topics
from connectors.kafka.unread import unread
from streaming.core.model.errors import SourceError
from streaming.core.model.ruv import Ruv
from streaming.core.records.record import Applied, Heartbeat, Hello, Record
from tests.harness.topics import TopicEnds

PATIENCE_MS = 30_000

HELLO = Hello(1, 0, 1, Ruv(), None, lost=False)
APPLIED = Applied(1, 3, 1, Ruv())


def publish_records(broker: Broker, topic: str, *records: Record | bytes | None) -> None:
    """Make the topic and say these in it, in session `s`."""
    ensure_topics(broker.bootstrap_servers, {}, [topic], 1_000)
    with TopicEnds(broker.bootstrap_servers) as ends:
        for record in records:
            good = not isinstance(record, bytes | None)
            ends.send(topic, "b", wire.encode("s", record) if good else record)  # type: ignore[arg-type]


def test_only_positions_behind_the_offset_are_told(broker: Broker, topic_prefix: str) -> None:
    """What the hub has read counts already; other records and invalid ones hold no position."""
    topic = f"{topic_prefix}changes.b"
    publish_records(broker, topic, HELLO, Heartbeat(1), b"{", None, APPLIED, Heartbeat(2))

    found = unread(broker.bootstrap_servers, {}, topic, 1, PATIENCE_MS, PATIENCE_MS)

    assert found.records == (("s", APPLIED),)
    assert found.read_to == found.end == 6


def test_nothing_behind_the_end(broker: Broker, topic_prefix: str) -> None:
    """Most often the hub has read everything."""
    topic = f"{topic_prefix}changes.b"
    publish_records(broker, topic, HELLO)

    found = unread(broker.bootstrap_servers, {}, topic, 1, PATIENCE_MS, PATIENCE_MS)

    assert (found.records, found.read_to, found.end) == ((), 1, 1)


def test_what_was_not_read_in_time_is_told(broker: Broker, topic_prefix: str) -> None:
    """A topic may be long: the caller learns that the answer is incomplete."""
    topic = f"{topic_prefix}changes.b"
    publish_records(broker, topic, HELLO, APPLIED)

    found = unread(broker.bootstrap_servers, {}, topic, 0, PATIENCE_MS, read_ms=0)

    assert (found.records, found.read_to, found.end) == ((), 0, 2)


def test_a_question_makes_no_topic(broker: Broker, topic_prefix: str) -> None:
    """A broker may create requested topics by itself, with the wrong settings."""
    topic = f"{topic_prefix}changes.b"

    for _ in range(2):
        with pytest.raises(SourceError, match="is not there"):
            unread(broker.bootstrap_servers, {}, topic, 0, PATIENCE_MS, PATIENCE_MS)
