"""The records of a topic with the times at which their producer appended them."""

from collections.abc import Iterator, Mapping

from kafka import KafkaConsumer, TopicPartition

from connectors.kafka.options import client_options
from streaming.core.model.errors import SourceError

_TIMEOUT_MS = 30_000


def timed_records(
    bootstrap: str, options: Mapping[str, str], topic: str
) -> Iterator[tuple[int, bytes]]:
    """(CreateTime in ms, bytes) of every record that is in the topic now, in order."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        enable_auto_commit=False,
        consumer_timeout_ms=_TIMEOUT_MS,
        **client_options(options),
    )
    partition = TopicPartition(topic, 0)
    try:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end = consumer.end_offsets([partition])[partition]
        while consumer.position(partition) < end:
            record = next(consumer, None)
            if record is None:
                raise SourceError(f"{topic} cannot be read up to offset {end}: is its broker up?")
            yield int(record.timestamp), bytes(record.value)
    finally:
        consumer.close()
