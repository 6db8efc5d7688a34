"""The sink keeps the order of each topic, and reports what did not arrive."""

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from connectors.kafka.embedded.broker import Broker
from connectors.kafka.options import SAME_NAME
from connectors.kafka.sink import UpdatesSink
from connectors.kafka.topics import ensure_topics
from streaming.core.model.errors import PublishError
from tests.harness.rights import allow_all, deny_write

RECORD_BYTES = 1_000_000


def records(broker: Broker, topic: str) -> list[tuple[bytes, bytes]]:
    """Everything in the topic, in order."""
    partition = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end = consumer.end_offsets([partition])[partition]
        found: list[tuple[bytes, bytes]] = []
        while consumer.position(partition) < end:
            polled = consumer.poll(timeout_ms=1000)
            found += [(record.key, record.value) for record in polled.get(partition, [])]
        return found


def test_a_broker_that_is_not_there_is_named() -> None:
    """The first thing that goes wrong for a new user is the address."""
    with pytest.raises(PublishError, match=r"127\.0\.0\.1:9.*kafka\.bootstrap_servers"):
        UpdatesSink("127.0.0.1:9", {}, connect_timeout_ms=500)


def test_the_sink_keeps_the_order_of_each_topic(broker: Broker, topic_prefix: str) -> None:
    """Batches must arrive as they were sent, large and small ones mixed."""
    names = [f"{topic_prefix}a", f"{topic_prefix}b"]
    ensure_topics(broker.bootstrap_servers, {}, names, RECORD_BYTES)
    sent = [(b"%d" % n, bytes(RECORD_BYTES if n % 50 == 7 else 10)) for n in range(500)]

    sink = UpdatesSink(broker.bootstrap_servers, {})
    for key, value in sent:
        for name in names:
            sink.send(name, key, value)
    sink.flush()
    sink.close()

    assert records(broker, names[0]) == sent
    assert records(broker, names[1]) == sent


def test_a_record_that_is_too_large_is_the_trouble_of_its_topic(
    broker: Broker, topic_prefix: str
) -> None:
    """The other consumers get what is theirs; the next batch is tried."""
    small, large = f"{topic_prefix}small", f"{topic_prefix}large"
    create_small(broker, small)
    ensure_topics(broker.bootstrap_servers, {}, [large], RECORD_BYTES)
    sink = UpdatesSink(broker.bootstrap_servers, {})

    for name in (small, large):
        sink.send(name, b"first", b"fits")
    sink.flush()
    for name in (small, large):
        sink.send(name, b"second", random_bytes(5000))
    refusing = sink.flush()
    sink.send(small, b"third", b"fits")

    assert (refusing, sink.flush()) == ({small}, set())
    sink.close()
    assert [key for key, _ in records(broker, small)] == [b"first", b"third"]
    assert [key for key, _ in records(broker, large)] == [b"first", b"second"]


def test_a_topic_that_may_not_be_written_is_named(broker: Broker, topic_prefix: str) -> None:
    """A right that was taken away is the trouble of one consumer, and can be given back."""
    name = f"{topic_prefix}denied"
    ensure_topics(broker.bootstrap_servers, {}, [name], RECORD_BYTES)
    deny_write(broker.bootstrap_servers, name)
    sink = UpdatesSink(broker.bootstrap_servers, {})

    sink.send(name, b"first", b"")
    refused = sink.flush()
    allow_all(broker.bootstrap_servers, name)
    sink.send(name, b"second", b"")

    assert (refused, sink.flush()) == ({name}, set())
    sink.close()
    assert [key for key, _ in records(broker, name)] == [b"second"]


def test_a_record_that_is_not_delivered_is_named_and_ends_the_sink(
    broker: Broker, topic_prefix: str
) -> None:
    """A batch with a gap must never count as published."""
    name = f"{topic_prefix}gone"
    sink = UpdatesSink(broker.bootstrap_servers, {})

    sink.send(name, b"first", b"for nobody")
    with pytest.raises(PublishError, match=f"record first was not delivered to {name}"):
        sink.flush()

    with pytest.raises(PublishError, match="record first"):
        sink.send(name, b"second", b"for nobody")
    with pytest.raises(PublishError, match="record first"):
        sink.flush()
    sink.close()


def test_a_topic_that_is_gone_is_not_made_anew(broker: Broker, topic_prefix: str) -> None:
    """A broker makes one in the shape that it likes, and the agent would read on in it."""
    name = f"{topic_prefix}gone"
    sink = UpdatesSink(broker.bootstrap_servers, {})

    sink.send(name, b"first", b"for nobody")
    with pytest.raises(PublishError, match=f"record first was not delivered to {name}"):
        sink.flush()

    sink.close()
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    assert name not in admin.list_topics()
    admin.close()


def test_every_option_of_the_other_clients_is_known_here(broker: Broker) -> None:
    """A name that librdkafka does not know would end the hub at its start."""
    values = {name: "1000" if name.endswith((".ms", ".bytes")) else "" for name in SAME_NAME}
    texts = {
        "client.dns.lookup": "use_all_dns_ips",
        "client.id": "hub",
        "sasl.kerberos.service.name": "kafka",
        "sasl.mechanism": "PLAIN",
        "security.protocol": "PLAINTEXT",
        "ssl.endpoint.identification.algorithm": "https",
    }

    sink = UpdatesSink(broker.bootstrap_servers, {**values, **texts})

    sink.flush()
    sink.close()


def create_small(broker: Broker, name: str) -> None:
    """A topic that takes only short records."""
    configs = {"max.message.bytes": "1000", "compression.type": "uncompressed"}
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics({name: {"num_partitions": 1, "configs": configs}}, wait_for_metadata=True)
    admin.close()


def random_bytes(count: int) -> bytes:
    """What no compression makes smaller."""
    return bytes(hash((n, "x")) & 255 for n in range(count))
