"""Where the rows of a batch are kept: on the driver, or on the executors if the batch is large.

The driver decides in both cases. Rows on the executors lack their images on the driver; the
executors append them to the changelog and publish them.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import pyarrow as pa

from checkpoints.store import Rows
from streaming.stages.publish import Chunk, Outgoing

DRIVER_BATCH_RECORDS = 50_000
"""The most records of a batch that the driver of a cluster carries unless configured otherwise.

It processes so many in about half a second. They are a quarter of the default of
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
        """CHECKED of all records; images on the executors are null."""

    def images(self, places: pa.Table) -> pa.Table:
        """Fetch before and after of changes on the executors, by (rid, offset), in this order."""

    def changelog(self, log: pa.Table) -> Rows:
        """Return the rows to append to the changelog; `log`: LOG."""

    def send(self, outgoing: Outgoing, chunks: Sequence[Chunk]) -> None:
        """Publish records with rows on the executors, in order; PublishError if one fails."""

    def close(self) -> None:
        """Release the rows."""
