"""Reading earlier records by their offsets from a real broker."""

import pytest
from kafka import KafkaProducer

from connectors.kafka import originals
from connectors.kafka.embedded.broker import Broker
from connectors.kafka.topics import ensure_topics
from streaming.core.model.errors import SourceError
from tests.harness.record_batches import break_last_batch, send_batch

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

    found = originals.read_records(broker.bootstrap_servers, {}, topics, wanted, RECORD_BYTES)

    values = {place: one.whole for place, one in found.items()}
    assert values == {(rid, n): f"{topics[rid]} {n}".encode() for rid, n in wanted}


def test_an_offset_that_the_topic_does_not_have_is_named(broker: Broker) -> None:
    """Quarantine keeps original bytes, so going on without them would lose a record in silence."""
    _written(broker, "originals-short")

    with pytest.raises(SourceError, match="offset 55 of originals-short"):
        originals.read_records(
            broker.bootstrap_servers, {}, {1: "originals-short"}, [(1, 55)], RECORD_BYTES
        )


CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def test_records_of_every_codec_are_read_and_a_broken_batch_holds_nobody_up(
    broker: Broker, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """Any agent may choose a codec; a hub that waits for what nobody can read waits for ever."""
    topic = "originals-codecs"
    ensure_topics(broker.bootstrap_servers, {}, [topic], RECORD_BYTES)
    for codec in CODECS:
        values = [f"{codec} {n} {'x' * 500}".encode() for n in range(3)]
        send_batch(broker, topic, codec, values)
        send_batch(broker, topic, codec, values)
        break_last_batch(tmp_path_factory.getbasetemp(), topic)
    wanted = [(1, offset) for offset in range(6 * len(CODECS)) if offset % 3]

    found = originals.read_records(broker.bootstrap_servers, {}, {1: topic}, wanted, RECORD_BYTES)

    texts = {n: one.whole.split()[:2] for (_, n), one in found.items() if one.whole}
    assert texts == {
        6 * at + n: [codec.encode(), b"%d" % n] for at, codec in enumerate(CODECS) for n in (1, 2)
    }
    broken = [f"offset {offset} cannot be read" for _, offset in wanted if offset not in texts]
    told = [one.getMessage() for one in caplog.records if one.name == originals.__name__]
    assert len(told) == len(broken)
    assert all(words in text for words, text in zip(broken, told, strict=True))
