"""Earlier records by their offset: quarantine keeps the original bytes of their changes."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from kafka import KafkaConsumer, TopicPartition

from connectors.kafka.options import client_options
from streaming.core.model.errors import SourceError

_TIMEOUT_MS = 30_000
_READ_THROUGH = 1_000
"""Records between two that are wanted: up to here reading them is quicker than seeking."""


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
    found: dict[tuple[int, int], bytes] = {}
    try:
        for rid, run in groupby(sorted(positions), key=itemgetter(0)):
            offsets = [offset for _, offset in run]
            for offset, value in _of_topic(consumer, topics[rid], offsets):
                found[rid, offset] = value
    finally:
        consumer.close()
    return found


def _of_topic(
    consumer: KafkaConsumer, topic: str, offsets: Sequence[int]
) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes) of the records at these rising offsets; what lies close is read through."""
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    reached: int | None = None
    for offset in offsets:
        if reached is None or offset - reached > _READ_THROUGH:
            consumer.seek(partition, offset)
        record = next((record for record in consumer if record.offset >= offset), None)
        if record is None or record.offset != offset:
            raise SourceError(f"{topic} no longer has offset {offset}: raise the topic's retention")
        yield offset, bytes(record.value)
        reached = offset
