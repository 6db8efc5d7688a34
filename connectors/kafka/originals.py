"""Earlier records by their offset: quarantine keeps the original bytes of their changes."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby, pairwise
from operator import itemgetter

from connectors.kafka.bounded_reader import BoundedReader, UnreadableRecords
from streaming.core.records.kept_bytes import KeptBytes

_READ_THROUGH = 1_000
"""Records between two that are wanted: up to here reading them is quicker than seeking."""

Place = tuple[int, int]
"""(rid, offset)."""

logger = logging.getLogger(__name__)


def read_records(
    bootstrap: str,
    options: Mapping[str, str],
    topics: Mapping[int, str],
    positions: Sequence[Place],
    record_bytes: int,
) -> dict[Place, KeptBytes]:
    """(rid, offset) -> what is kept of that record; SourceError if Kafka does not give it.

    One that cannot be read, because its batch is broken or its codec unknown, is left out and
    logged: whoever waits for it would wait for ever.
    """
    found = dict[Place, KeptBytes]()
    with closing(BoundedReader(bootstrap, options, record_bytes)) as reader:
        for rid, run in groupby(sorted(set(positions)), key=itemgetter(0)):
            for offsets in _near([offset for _, offset in run]):
                for one in reader.read(topics[rid], offsets[0], offsets[-1] + 1):
                    if isinstance(one, UnreadableRecords):
                        _log_unreadable(topics[rid], one, offsets)
                    elif one.offset in offsets:
                        found[rid, one.offset] = one.kept
    return found


def _near(offsets: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the rising offsets in groups that are read through."""
    gaps = enumerate(pairwise(offsets), 1)
    borders = [at for at, (one, following) in gaps if following - one > _READ_THROUGH]
    for start, end in pairwise([0, *borders, len(offsets)]):
        yield offsets[start:end]


def _log_unreadable(topic: str, found: UnreadableRecords, wanted: Sequence[int]) -> None:
    for offset in wanted:
        if offset in found.offsets:
            logger.warning("%s, offset %d cannot be read: %s", topic, offset, found.reason)
