"""Where the rows of a batch are kept: on the driver, or on the executors if the batch is large.

The driver decides in both cases. Rows on the executors lack their images on the driver; the
executors append them to the changelog and publish them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import pyarrow as pa

from checkpoints.store import Rows
from checkpoints.tables import CHANGELOG
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
    """The rows of one batch; `facts`: CHECKED of its records, without images on the executors."""

    facts: pa.Table

    def images(self, places: pa.Table) -> pa.Table:
        """Fetch before and after of changes on the executors, by (rid, offset), in this order."""

    def changelog(self, log: pa.Table) -> Rows:
        """Return the rows to append to the changelog; `log`: LOG."""

    def send(self, outgoing: Outgoing, chunks: Sequence[Chunk]) -> None:
        """Publish records with rows on the executors, in order; PublishError if one fails."""

    def close(self) -> None:
        """Release the rows."""


@dataclass(slots=True)
class DriverCarrier:
    """A carrier that has every row, with its images, on the driver."""

    facts: pa.Table

    def images(self, places: pa.Table) -> pa.Table:
        """No change is away."""
        return places.select([])

    def changelog(self, log: pa.Table) -> Rows:
        """Return the rows as they are."""
        return log.select(CHANGELOG.names)

    def send(self, outgoing: Outgoing, chunks: Sequence[Chunk]) -> None:
        """Never called with records: all rows are on the driver."""

    def close(self) -> None:
        """Nothing to release."""
