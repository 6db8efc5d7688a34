"""Keep the rows of a small batch on the driver, with all images."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from checkpoints.store import Rows
from checkpoints.tables import CHANGELOG
from streaming.carriers.arrow_stream import coalesced
from streaming.core.model.table import Table
from streaming.core.records.check import LIMITS, Limits
from streaming.jvm.private import collect_batches
from streaming.stages.check import check_records
from streaming.stages.checked import NO_CHECKED
from streaming.stages.publish import Chunk, Outgoing

_BESIDE = ThreadPoolExecutor(2, thread_name_prefix="check")
"""Arrow releases Python's lock, so two tables are parsed while a third arrives."""


def parse_on_driver(
    records: DataFrame,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits = LIMITS,
) -> pa.Table:
    """CHECKED of all records (carriers/read.py: COLUMNS), in any order."""

    def checked(arrived: pa.Table) -> pa.Table:
        return check_records(arrived, topics, tables, limits)

    parts = _BESIDE.map(checked, coalesced(collect_batches(records)))
    return pa.concat_tables([NO_CHECKED, *parts])


@dataclass(frozen=True, slots=True)
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
