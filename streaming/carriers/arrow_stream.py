"""Coalesce the small Arrow batches of a query into larger tables."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

_WORTH_IT = 10_000
"""From so many records on, the overhead of a call is small against its records."""


def coalesced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the batches, small ones concatenated, to save calls per table."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= _WORTH_IT:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
