"""Arrow stream: the batches of a query, gathered into tables that are worth a call each."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

_WORTH_IT = 10_000
"""Of so many records on, what one takes of the time counts, not how often one begins."""


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches, small ones together: dozens of calls take a table apart, whatever its size."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= _WORTH_IT:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
