"""Topics are made right or refused, and their offsets are true."""

import pytest
from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaAdminClient, TopicPartition

from connectors.kafka.embedded.broker import Broker
from connectors.kafka.sink import UpdatesSink
from connectors.kafka.topics import Topics, end_offsets, ensure_topics
from streaming.core.model.errors import SourceError

RECORD_BYTES = 1_000_000


def create(broker: Broker, name: str, partitions: int = 1, **configs: str) -> None:
    """A topic as somebody else would have made it; underscores in names stand for dots."""
    named = {key.replace("_", "."): value for key, value in configs.items()}
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics(
        {name: {"num_partitions": partitions, "configs": named}}, wait_for_metadata=True
    )
    admin.close()


def test_a_missing_topic_is_created_as_the_hub_needs_it(broker: Broker, topic_prefix: str) -> None:
    """What the hub made itself must pass its own check, with an id and no records."""
    names = [f"{topic_prefix}a", f"{topic_prefix}b"]

    ensure_topics(broker.bootstrap_servers, {}, names, RECORD_BYTES)
    ensure_topics(broker.bootstrap_servers, {}, names, RECORD_BYTES)

    with Topics(broker.bootstrap_servers, {}) as topics:
        ids = topics.ids(names)
    assert set(ids) == set(names)
    assert len(set(ids.values())) == 2
    assert end_offsets(broker.bootstrap_servers, {}, names) == dict.fromkeys(names, 0)


def test_a_changes_topic_takes_no_record_that_is_large_once_it_is_decompressed(
    broker: Broker, topic_prefix: str
) -> None:
    """Some kB may hold what no reader can hold; the hub's own topics keep what it compresses."""
    names = [f"{topic_prefix}changes", f"{topic_prefix}updates"]
    ensure_topics(broker.bootstrap_servers, {}, names, RECORD_BYTES, changes=names[:1])
    sizes = {"message.max.bytes": 20_000_000, "batch.size": 20_000_000}
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "compression.type": "zstd", **sizes}
    )
    refused = list[str]()

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            refused.append(f"{message.topic()}: {error.name()}")

    for name in names:
        producer.produce(name, b" " * 10_000_000, partition=0, on_delivery=delivered)
    producer.flush(30)

    assert refused == [f"{names[0]}: MSG_SIZE_TOO_LARGE"]


@pytest.mark.parametrize(
    ("configs", "complaint"),
    [
        ({"partitions": 2}, "has 2 partitions"),
        ({"cleanup_policy": "compact"}, "is compacted"),
        ({"cleanup_policy": "compact,delete"}, "is compacted"),
        ({"message_timestamp_type": "LogAppendTime"}, "has LogAppendTime"),
        ({"max_message_bytes": "500000"}, "accepts records of 500000 bytes"),
    ],
)
def test_a_topic_of_the_wrong_shape_is_refused_with_advice(
    broker: Broker, topic_prefix: str, configs: dict[str, str], complaint: str
) -> None:
    """Each of these would lose order, changes or time without a word."""
    name = f"{topic_prefix}wrong"
    create(broker, name, **configs)  # type: ignore[arg-type]

    with pytest.raises(SourceError, match=complaint) as refused:
        ensure_topics(broker.bootstrap_servers, {}, [name], RECORD_BYTES)

    assert name in str(refused.value)
    assert ": " in str(refused.value).splitlines()[1]


def test_all_complaints_come_at_once(broker: Broker, topic_prefix: str) -> None:
    """An operator who repairs one topic after the other starts the hub once, not five times."""
    create(broker, f"{topic_prefix}a", partitions=3, cleanup_policy="compact")
    create(broker, f"{topic_prefix}b", message_timestamp_type="LogAppendTime")

    with pytest.raises(SourceError) as refused:
        ensure_topics(
            broker.bootstrap_servers, {}, [f"{topic_prefix}a", f"{topic_prefix}b"], RECORD_BYTES
        )

    assert len(str(refused.value).splitlines()) == 4


def test_a_deleted_topic_is_named(broker: Broker, topic_prefix: str) -> None:
    """A topic that goes away under a running hub must not look like an empty one."""
    with (
        Topics(broker.bootstrap_servers, {}) as topics,
        pytest.raises(SourceError, match=f"{topic_prefix}gone is not there"),
    ):
        topics.ids([f"{topic_prefix}gone"])


def test_a_topic_made_anew_has_another_id(broker: Broker, topic_prefix: str) -> None:
    """Same name, same offsets, other records: only the id tells."""
    name = f"{topic_prefix}a"
    with Topics(broker.bootstrap_servers, {}) as topics:
        topics.ensure([name], RECORD_BYTES)
        before = topics.ids([name])
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.delete_topics([name])
        while name in admin.list_topics():
            pass
        admin.close()

        topics.ensure([name], RECORD_BYTES)

        assert topics.ids([name]) != before


def test_first_offsets_move_when_the_head_is_cut_off(broker: Broker, topic_prefix: str) -> None:
    """Retention that takes records away has to be seen, so that lost input is not skipped."""
    name = f"{topic_prefix}a"
    with Topics(broker.bootstrap_servers, {}) as topics:
        topics.ensure([name], RECORD_BYTES)
        sink = UpdatesSink(broker.bootstrap_servers, {})
        for number in range(5):
            sink.send(name, b"k", b"%d" % number)
        sink.flush()
        sink.close()
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.delete_records({TopicPartition(name, 0): 3})
        admin.close()

        assert topics.first_offsets([name]) == {name: 3}
        assert topics.end_offsets([name]) == {name: 5}


def test_a_broker_that_is_not_there_is_named() -> None:
    """The first thing that goes wrong for a new user is the address."""
    with pytest.raises(SourceError, match=r"127\.0\.0\.1:9.*kafka\.bootstrap_servers"):
        Topics("127.0.0.1:9", {}, connect_timeout_ms=500)
