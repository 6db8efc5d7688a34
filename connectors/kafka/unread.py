"""The position records in a replica's topic that the hub has not read yet."""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from kafka import TopicPartition

from connectors.kafka.looking import looking_consumer
from connectors.kafka.source_errors import source_errors
from connectors.kafka.topics import Topics
from connectors.wire import decode
from streaming.core.model.errors import WireError
from streaming.core.records.record import Applied, Hello, Record

_POLL_MS = 200


@dataclass(frozen=True, slots=True)
class UnreadPositions:
    """Every hello and applied in [offset, read_to) as (session, record), in topic order.

    `end`: the topic's own, above `read_to` if the time ran out.
    """

    records: tuple[tuple[str, Record], ...]
    read_to: int
    end: int


def unread(
    bootstrap: str,
    options: Mapping[str, str],
    topic: str,
    offset: int,
    connect_ms: int,
    read_ms: int,
) -> UnreadPositions:
    """The position records in a replica's topic from this offset on, within `read_ms`.

    SourceError when no broker answers within `connect_ms`, or the topic is not there.
    """
    with Topics(bootstrap, options, connect_ms) as topics:
        first, end = topics.first_offsets([topic])[topic], topics.end_offsets([topic])[topic]
    at, found = max(offset, first), list[tuple[str, Record]]()
    if at >= end:
        return UnreadPositions((), at, end)
    deadline = time.monotonic() + read_ms / 1000
    partition = TopicPartition(topic, 0)
    with (
        source_errors(bootstrap, f" for {topic} from offset {at} on"),
        closing(looking_consumer(bootstrap, options, bootstrap_timeout_ms=connect_ms)) as consumer,
    ):
        consumer.assign([partition])
        consumer.seek(partition, at)
        while at < end and time.monotonic() < deadline:
            values = [record.value for record in consumer.poll(_POLL_MS).get(partition, ())]
            found += [position for value in values if (position := _position(value)) is not None]
            at = consumer.position(partition)
    return UnreadPositions(tuple(found), at, end)


def _position(value: bytes | None) -> tuple[str, Record] | None:
    """A hello or applied with its session; None: another kind of record, or an invalid one."""
    try:
        session, record = decode(value or b"")
    except WireError:
        return None
    return (session, record) if isinstance(record, Hello | Applied) else None
