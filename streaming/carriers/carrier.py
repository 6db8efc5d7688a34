"""Who carries the rows of a batch: the driver, or the executors when it is large.

The driver decides either way, from the facts. What the executors carry lacks its images there:
they append it to the changelog and send it from where it is.
"""

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from checkpoints.store import Rows
from streaming.stages.publish import Chunk, Outgoing


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
