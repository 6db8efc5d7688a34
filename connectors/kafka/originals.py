"""Earlier records by their offset: quarantine keeps the original bytes of their changes."""

from collections.abc import Mapping, Sequence

from kafka import KafkaConsumer, TopicPartition

from connectors.kafka.options import client_options
from streaming.core.model.errors import SourceError

_TIMEOUT_MS = 30_000


def read_records(
    bootstrap: str,
    options: Mapping[str, str],
    topics: Mapping[int, str],
    positions: Sequence[tuple[int, int]],
) -> dict[tuple[int, int], bytes]:
    """(rid, offset) -> the bytes of that record; SourceError when a topic no longer has one."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        consumer_timeout_ms=_TIMEOUT_MS,
        **client_options(options),
    )
    try:
        return {(rid, at): _one(consumer, topics[rid], at) for rid, at in positions}
    finally:
        consumer.close()


def _one(consumer: KafkaConsumer, topic: str, offset: int) -> bytes:
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, offset)
    record = next(iter(consumer), None)
    if record is None or record.offset != offset:
        raise SourceError(f"{topic} no longer has offset {offset}: raise the topic's retention")
    return bytes(record.value)
