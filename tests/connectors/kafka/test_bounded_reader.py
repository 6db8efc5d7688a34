"""A range of a topic is read within a bound of memory, from a real broker."""

from contextlib import closing

import pytest
from kafka import KafkaAdminClient

from connectors.kafka.bounded_reader import BoundedReader
from connectors.kafka.embedded.broker import Broker
from connectors.kafka.record_stream import FoundRecord
from streaming.core.model.errors import SourceError
from tests.harness.record_batches import send_batch

BOUND = 100_000


def written(broker: Broker, topic: str) -> int:
    """A topic with a batch of each compression, each with a record of 3 MB; how many records."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    settings = {"num_partitions": 1, "configs": {"max.message.bytes": "4000000"}}
    admin.create_topics({topic: settings}, wait_for_metadata=True)
    admin.close()
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for codec in codecs:
        values = (f"{codec} first".encode(), b" " * 3_000_000, f"{codec} last".encode())
        send_batch(broker, topic, codec, values)
    return 3 * len(codecs)


def test_a_range_is_read_from_the_middle_of_a_batch(broker: Broker, topic_prefix: str) -> None:
    """What lies before it in its batch, and behind its end, is left out; nothing else is."""
    topic = f"{topic_prefix}mixed"
    end = written(broker, topic)

    with closing(BoundedReader(broker.bootstrap_servers, {}, BOUND)) as reader:
        whole = list(reader.read(topic, 0, end))
        part = list(reader.read(topic, 2, end - 1))

    assert [one.offset for one in whole if isinstance(one, FoundRecord)] == [*range(end)]
    assert part == whole[2:-1]
    kept = {one.offset: one.kept for one in part if isinstance(one, FoundRecord)}
    assert [offset for offset, one in kept.items() if one.sha256] == [
        *range(4, end - 1, 3),
    ]


def test_a_broker_without_the_topic_is_named(broker: Broker) -> None:
    """The hub waits for its broker then, and never takes it that there was nothing."""
    with (
        closing(BoundedReader(broker.bootstrap_servers, {}, BOUND)) as reader,
        pytest.raises(SourceError, match=broker.bootstrap_servers),
    ):
        list(reader.read("not-there", 0, 1))
