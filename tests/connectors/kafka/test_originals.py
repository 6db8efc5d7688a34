"""Reading earlier records by their offsets from a real broker."""

import pytest
from confluent_kafka import Producer
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


CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def _in_each_codec(broker: Broker, topic: str) -> None:
    """A batch of three records in each codec, one behind the other."""
    ensure_topics(broker.bootstrap_servers, {}, [topic], RECORD_BYTES)
    for codec in CODECS:
        settings = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 200}
        producer = Producer({**settings, "compression.type": codec})
        for n in range(3):
            producer.produce(topic, f"{codec} {n} {'x' * 500}".encode(), partition=0)
        assert producer.flush(60) == 0


def test_a_record_is_read_in_whatever_codec_its_replica_wrote_it(broker: Broker) -> None:
    """Any agent may choose one; a hub that lacks it would end at its first bad record."""
    _in_each_codec(broker, "originals-codecs")
    wanted = [(1, offset) for offset in range(3 * len(CODECS))]

    found = originals.read_records(broker.bootstrap_servers, {}, {1: "originals-codecs"}, wanted)

    texts = [found[place].split()[:2] for place in wanted]
    assert texts == [[codec.encode(), b"%d" % n] for codec in CODECS for n in range(3)]
