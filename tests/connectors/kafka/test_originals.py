"""Reading earlier records by their offsets from a real broker."""

import pytest
from kafka import KafkaProducer

from connectors.kafka import originals
from connectors.kafka.broker import Broker
from connectors.kafka.topics import ensure_topics
from streaming.core.model.errors import SourceError

RECORDS = 50
RECORD_BYTES = 1_000_000


def _written(broker: Broker, *topics: str) -> None:
    ensure_topics(broker.bootstrap_servers, {}, topics, RECORD_BYTES)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for topic in topics:
        for n in range(RECORDS):
            producer.send(topic, f"{topic} {n}".encode(), partition=0)
    producer.close()


@pytest.mark.parametrize("read_through", [0, 3, 1_000])
def test_each_wanted_record_comes_back_whatever_lies_between(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, read_through: int
) -> None:
    """Near ones are read through and far ones are sought; the order of the question is free."""
    monkeypatch.setattr(originals, "_READ_THROUGH", read_through)
    topics = {1: f"originals-a-{read_through}", 2: f"originals-b-{read_through}"}
    _written(broker, *topics.values())
    wanted = [(2, 49), (1, 3), (1, 4), (2, 0), (1, 40), (1, 0)]

    found = originals.read_records(broker.bootstrap_servers, {}, topics, wanted)

    assert found == {(rid, n): f"{topics[rid]} {n}".encode() for rid, n in wanted}


def test_an_offset_that_the_topic_does_not_have_is_named(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quarantine keeps original bytes, so going on without them would lose a record in silence."""
    monkeypatch.setattr(originals, "_TIMEOUT_MS", 500)
    _written(broker, "originals-short")

    with pytest.raises(SourceError, match=f"no longer has offset {RECORDS + 5}"):
        originals.read_records(
            broker.bootstrap_servers, {}, {1: "originals-short"}, [(1, RECORDS + 5)]
        )
