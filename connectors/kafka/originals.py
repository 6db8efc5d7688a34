"""Earlier records by their offset: quarantine keeps the original bytes of their changes."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from gzip import BadGzipFile
from itertools import groupby
from operator import itemgetter

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import CorruptRecordError, KafkaError, UnsupportedCodecError

from connectors.kafka.options import client_options
from streaming.core.model.errors import HubError, SourceError

_TIMEOUT_MS = 30_000
_READ_THROUGH = 1_000
"""Records between two that are wanted: up to here reading them is quicker than seeking."""

_UNREADABLE_MOST = 20
"""Behind so many of a replica its others are left out too: each costs a connection."""

Place = tuple[int, int]
"""(rid, offset)."""

logger = logging.getLogger(__name__)


def read_records(
    bootstrap: str,
    options: Mapping[str, str],
    topics: Mapping[int, str],
    positions: Sequence[Place],
) -> dict[Place, bytes]:
    """(rid, offset) -> the bytes of that record; SourceError when a topic does not answer.

    One that cannot be read, because its batch is broken or its codec unknown, is left out and
    logged: whoever waits for it would wait for ever. A consumer that failed is not asked again,
    and the record is sought by another one before it is given up. Behind many of a replica the rest
    of its records is left out too: a batch that takes too long ends the hub.
    """
    wanted, found = sorted(positions), dict[Place, bytes]()
    unreadable = Counter[int]()
    done, failed = 0, -1
    while done < len(wanted):
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            enable_auto_commit=False,
            consumer_timeout_ms=_TIMEOUT_MS,
            **client_options(options),
        )
        try:
            for place, value in _records(consumer, topics, wanted[done:]):
                done += 1
                if value is not None:
                    found[place] = value
        except Exception as error:
            if not _is_of_a_batch(error):
                raise
            rid, offset = wanted[done]
            if failed == done:
                logger.warning("%s, offset %d cannot be read: %r", topics[rid], offset, error)
                unreadable[rid] += 1
                done += 1
            if unreadable[rid] == _UNREADABLE_MOST:
                wanted = [*wanted[:done], *(one for one in wanted[done:] if one[0] != rid)]
            failed = done
        finally:
            consumer.close()
    return found


def _is_of_a_batch(error: Exception) -> bool:
    """Return whether this is about the bytes of a batch, and not about the broker.

    Each codec's library has errors of its own.
    """
    if isinstance(error, CorruptRecordError | UnsupportedCodecError | BadGzipFile):
        return True
    return not isinstance(error, KafkaError | HubError | OSError)


def _records(
    consumer: KafkaConsumer, topics: Mapping[int, str], positions: Sequence[Place]
) -> Iterator[tuple[Place, bytes | None]]:
    for rid, run in groupby(positions, key=itemgetter(0)):
        for offset, value in _of_topic(consumer, topics[rid], [offset for _, offset in run]):
            yield (rid, offset), value


def _of_topic(
    consumer: KafkaConsumer, topic: str, offsets: Sequence[int]
) -> Iterator[tuple[int, bytes | None]]:
    """(offset, bytes) of the records at these rising offsets; what lies close is read through.

    None: the topic has no record there, or one without a value.
    """
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    reached: int | None = None
    for offset in offsets:
        if reached is None or offset - reached > _READ_THROUGH:
            consumer.seek(partition, offset)
        record = next((record for record in consumer if record.offset >= offset), None)
        if record is None:
            raise SourceError(f"{topic} does not give offset {offset}: is its broker in order?")
        reached = None if record.offset > offset else offset
        yield offset, record.value if reached is not None else None
