"""Who carries the rows of a batch: the driver, or the executors when it is large.

The driver decides either way, from the facts. What the executors carry lacks its images there:
they append it to the changelog and send it from where it is.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import pyarrow as pa

from checkpoints.store import Rows
from streaming.stages.publish import Chunk, Outgoing

DRIVER_BATCH_RECORDS = 50_000
"""The most records of a batch that the driver of a cluster carries unless configured otherwise.

It carries so many in about half a second; and they are a quarter of the default of
limits.offsets_per_batch, so the full batches of a backlog are carried by the executors.
"""


def is_carried_by_executors(
    records: int, driver_batch_records: int | Literal["auto"], *, is_local: bool
) -> bool:
    """Return whether the executors carry a batch of so many records.

    `driver_batch_records`: as configured. `is_local`: Spark runs in the driver's own process, where
    the executors are threads beside it and carrying there only adds work.
    """
    if driver_batch_records == "auto":
        return not is_local and records > DRIVER_BATCH_RECORDS
    return records > driver_batch_records


class Carrier(Protocol):
    """The rows of one batch; `facts` are its records as CHECKED."""

    @property
    def facts(self) -> pa.Table:
        """What the driver decides by."""

    def images(self, places: pa.Table) -> pa.Table:
        """(rid, offset) of changes that are away -> before and after of each, in this order."""

    def changelog(self, log: pa.Table) -> Rows:
        """Rows of LOG as what is appended to the changelog."""

    def send(self, outgoing: Outgoing, chunks: Sequence[Chunk]) -> None:
        """Send records of which rows are away, in order, and wait; PublishError if one fails."""

    def close(self) -> None:
        """Forget what was kept."""
