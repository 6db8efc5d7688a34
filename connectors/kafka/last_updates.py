"""How far a hub has sent: generation and hub epoch of the last update in an updates topic."""

from collections.abc import Iterator, Mapping
from contextlib import closing

from kafka import KafkaConsumer

from connectors.kafka.looking import looking_consumer, records_between
from connectors.kafka.source_errors import source_errors
from connectors.wire import decode_answer
from streaming.core.model.errors import WireError
from streaming.core.records.record import Update
from streaming.core.state.restored import SentPosition

_LOOK_BACK = (1, 10, 100)
"""How many records from the end are read until one is an update: a `stopped` may stand there."""
_READ_S = 15


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
    for record in records_between(consumer, topic, first, end, _READ_S):
        try:
            update = decode_answer(record.value or b"")
        except WireError:
            continue
        if isinstance(update, Update):
            yield SentPosition(update.generation, update.hub_epoch)
