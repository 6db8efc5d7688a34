"""How far a hub has sent: generation and hub epoch of the last update in an updates topic."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing

from kafka import KafkaConsumer, TopicPartition

from connectors.kafka.looking import looking_consumer
from connectors.kafka.source_errors import source_errors
from connectors.wire import decode_answer
from streaming.core.model.errors import SourceError, WireError
from streaming.core.records.record import Update
from streaming.core.state.restored import SentPosition

_LOOK_BACK = (1, 10, 100)
"""How many records from the end are read until one is an update: a `stopped` may stand there."""
_READ_S = 15
_POLL_MS = 200


def last_updates(
    bootstrap: str, options: Mapping[str, str], ends: Mapping[str, int]
) -> dict[str, SentPosition]:
    """Updates topic -> the position of its last update; absent where it holds none.

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
    partition, deadline_s = TopicPartition(topic, 0), time.monotonic() + _READ_S
    consumer.assign([partition])
    consumer.seek(partition, first)
    while consumer.position(partition) < end:
        if time.monotonic() > deadline_s:
            raise SourceError(f"topic {topic} cannot be read up to offset {end}: is its broker up?")
        for record in consumer.poll(_POLL_MS).get(partition, ()):
            if record.offset >= end:
                break
            try:
                update = decode_answer(record.value or b"")
            except WireError:
                continue
            if isinstance(update, Update):
                yield SentPosition(update.generation, update.hub_epoch)
