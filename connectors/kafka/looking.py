"""A consumer that looks into a topic, and what is found so: times, and the last update sent.

It is in no group, and commits and creates nothing.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from connectors.kafka.options import client_options
from connectors.kafka.source_errors import source_errors
from connectors.wire import decode_answer
from streaming.core.model.errors import SourceError, WireError
from streaming.core.records.record import PacketMarker, Update
from streaming.core.state.restored import SentPosition

_POLL_MS = 200
_PATIENCE_S = 30
_LAST_S = 15
_LOOK_BACK = (1, 10, 100)
"""How many records from the end are read until one is an update: a `stopped` may stand there."""


def looking_consumer(
    bootstrap: str,
    options: Mapping[str, str],
    **more: Any,  # noqa: ANN401 - what kafka-python takes
) -> KafkaConsumer:
    """The consumer, with more of kafka-python's own options; KafkaError if no broker answers."""
    return KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
        fetch_max_wait_ms=1,
        **client_options(options),
        **more,
    )


def records_between(
    consumer: KafkaConsumer, topic: str, first: int, end: int, patience_s: float
) -> Iterator[Any]:
    """The topic's records at offsets [first, end); SourceError if none comes for so long."""
    partition, heard_s = TopicPartition(topic, 0), time.monotonic()
    consumer.assign([partition])
    consumer.seek(partition, first)
    while consumer.position(partition) < end:
        if time.monotonic() - heard_s > patience_s:
            raise SourceError(f"topic {topic} cannot be read up to offset {end}: is its broker up?")
        for record in consumer.poll(_POLL_MS).get(partition, ()):
            if record.offset >= end:
                return
            yield record
            heard_s = time.monotonic()


def timed_records(
    bootstrap: str, options: Mapping[str, str], topic: str
) -> Iterator[tuple[int, bytes]]:
    """(CreateTime in ms, bytes) of every record that is in the topic now, in order."""
    partition = TopicPartition(topic, 0)
    with closing(looking_consumer(bootstrap, options)) as consumer:
        first = consumer.beginning_offsets([partition])[partition]
        end = consumer.end_offsets([partition])[partition]
        for record in records_between(consumer, topic, first, end, _PATIENCE_S):
            yield int(record.timestamp), bytes(record.value)


def last_updates(
    bootstrap: str, options: Mapping[str, str], ends: Mapping[str, int]
) -> dict[str, SentPosition]:
    """Updates topic -> the position of its last update or packet; absent where it holds none.

    `ends`: topic -> an offset; what stands there or behind it does not count. SourceError if a
    topic cannot be read.
    """
    found = dict[str, SentPosition]()
    if not any(ends.values()):
        return found
    with (
        source_errors(bootstrap, " for the last updates"),
        closing(looking_consumer(bootstrap, options)) as consumer,
    ):
        for topic, end in ends.items():
            for back in _LOOK_BACK:
                sent = [*_positions(consumer, topic, max(0, end - back), end)]
                if sent:
                    found[topic] = max(sent)
                    break
    return found


def _positions(consumer: KafkaConsumer, topic: str, first: int, end: int) -> Iterator[SentPosition]:
    for record in records_between(consumer, topic, first, end, _LAST_S):
        try:
            update = decode_answer(record.value or b"")
        except WireError:
            continue
        if isinstance(update, Update | PacketMarker):
            yield SentPosition(update.generation, update.hub_epoch)
