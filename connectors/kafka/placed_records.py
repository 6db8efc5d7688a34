"""Records that packets brought into a topic: each carries its place in a header of Kafka.

So whoever reads the topic knows which places are there, and nothing else has to remember it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from kafka import TopicPartition

from connectors.kafka.looking import looking_consumer, records_between
from connectors.kafka.source_errors import source_errors
from streaming.core.matrix.packets import Place

OUTBOX = "slackwater.outbox"
PLACE = "slackwater.place"
"""The names of the headers: the outbox's id, and the record's place in it as a decimal number."""

_PATIENCE_S = 15


class PlacedRecord(NamedTuple):
    """A record that a packet brought; `digest`: SHA-256 of its value."""

    offset: int
    place: Place
    digest: str


def headers_of(place: Place) -> list[tuple[str, bytes]]:
    """The headers of a record at this place."""
    return [(OUTBOX, place.outbox.encode()), (PLACE, str(place.place).encode())]


def digest_of(value: bytes) -> str:
    """The digest of a record by which two are compared."""
    return hashlib.sha256(value).hexdigest()


def placed_records(
    bootstrap: str, options: Mapping[str, str], topic: str, first: int, end: int | None = None
) -> tuple[list[PlacedRecord], int]:
    """The records with places from offset `first` on that are retained, and where the topic ends.

    `end`: the offset to stop before; None: the topic's end. SourceError if it cannot be read.
    """
    partition = TopicPartition(topic, 0)
    with (
        source_errors(bootstrap, f" for the records in {topic}"),
        closing(looking_consumer(bootstrap, options)) as consumer,
    ):
        begin = max(first, consumer.beginning_offsets([partition])[partition])
        ends = consumer.end_offsets([partition])[partition]
        stop = ends if end is None else min(end, ends)
        if begin >= stop:
            return [], ends
        records = records_between(consumer, topic, begin, stop, _PATIENCE_S)
        found = (_placed(record) for record in records)
        return [one for one in found if one is not None], ends


def _placed(record: Any) -> PlacedRecord | None:  # noqa: ANN401 - of kafka-python
    place = _place(record.headers)
    if place is None or record.value is None:
        return None
    return PlacedRecord(record.offset, place, digest_of(bytes(record.value)))


def _place(headers: Sequence[tuple[str, bytes]]) -> Place | None:
    """The place that a record's headers name; None: another wrote it."""
    named = dict(headers)
    try:
        return Place(named[OUTBOX].decode(), int(named[PLACE]))
    except (KeyError, ValueError):
        return None
