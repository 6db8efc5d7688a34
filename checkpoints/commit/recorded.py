"""What a hub has recorded of its batches: plan, commit row, and the rows that each table got."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from checkpoints.commit.epochs import COMMIT, PLAN
from checkpoints.commit.protocol import WRITTEN
from checkpoints.query import in_schema
from checkpoints.root import table_uri
from checkpoints.spark_errors import translated
from checkpoints.store import StateStore
from checkpoints.tables import SCHEMAS, TableName
from streaming.core.access.root import StateRoot

if TYPE_CHECKING:  # most questions to the past start no Spark, and its import takes a second
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]

ROWS_AT_ONCE = 400_000
"""Of how many changelog rows are in memory at a time, if no batch has more."""

_JUDGED: Collection[TableName] = [name for name in WRITTEN if name is not TableName.DELAYS]
"""Delays are measured and not judged, and a state of before has none."""

Read = Callable[[TableName, int, int], pa.Table]
"""The rows of a table of the batches from one number to another, both included, in any order."""


class BatchMark(NamedTuple):
    """A committed batch: its hub epoch, the hub's clock, and how many changelog rows it has."""

    batch: int
    hub_epoch: int
    at_ms: int
    entries: int


@dataclass(frozen=True, slots=True)
class RecordedRows:
    """One batch as it stands in the tables; `plan`, `commit`: its rows of `epochs`."""

    batch: int
    plan: Row
    commit: Row
    tables: Mapping[TableName, pa.Table]


def mark_at(marks: Iterable[BatchMark], hub_epoch: int) -> BatchMark | None:
    """The last batch behind which the hub was at this epoch or below it; None: none was."""
    there = (mark for mark in marks if mark.hub_epoch <= hub_epoch)
    return max(there, key=lambda mark: mark.batch, default=None)


def batch_marks(store: StateStore) -> list[BatchMark]:
    """Every committed batch but the genesis, in order."""
    store.refreshed(TableName.EPOCHS)
    columns = ["batch", "hub_epoch", "at", "counts"]
    where = (ds.field("kind") == COMMIT) & (ds.field("batch") > 0)
    rows = store.read(TableName.EPOCHS, where, columns).sort_by("batch")
    at_ms = pc.divide(rows["at"].cast(pa.int64()), 1000)
    found = zip(
        *(rows[name].to_pylist() for name in ("batch", "hub_epoch")),
        at_ms.to_pylist(),
        rows["counts"].to_pylist(),
        strict=True,
    )
    return [BatchMark(n, h, ms, dict(counts or ()).get("entries", 0)) for n, h, ms, counts in found]


def commit_of(store: StateStore, batch: int) -> Row | None:
    """The commit row of a batch."""
    where = (ds.field("batch") == batch) & (ds.field("kind") == COMMIT)
    found = in_schema(store.read(TableName.EPOCHS, where), SCHEMAS[TableName.EPOCHS])
    return next(iter(found.to_pylist()), None)


def judged_in(store: StateStore, csn: str) -> int | None:
    """The hub epoch in which a change was judged; None: it was not."""
    where = (ds.field("kind") == "change") & (ds.field("csn") == csn)
    epochs = store.read(TableName.CHANGELOG, where, ["hub_epoch"])["hub_epoch"].to_pylist()
    return max(epochs, default=None)


def from_store(store: StateStore) -> Read:
    """Read the tables of a store in this process, each time at their newest versions.

    A running hub removes files ten minutes after it has compacted them away.
    """

    def read(name: TableName, first: int, last: int) -> pa.Table:
        store.refreshed(name)
        found = store.read(name, (ds.field("batch") >= first) & (ds.field("batch") <= last))
        return in_schema(found, SCHEMAS[name])

    return read


def from_spark(spark: "SparkSession", root: StateRoot) -> Read:
    """Read the tables of a state root by Spark."""

    def read(name: TableName, first: int, last: int) -> pa.Table:
        with translated():
            rows = spark.read.format("delta").load(table_uri(root, name))
            there = [column for column in SCHEMAS[name].names if column in rows.columns]
            found = rows.where(f"batch >= {first} AND batch <= {last}").select(*there).toArrow()
        return in_schema(found, SCHEMAS[name])

    return read


def recorded_rows(read: Read, marks: Sequence[BatchMark]) -> Iterator[RecordedRows]:
    """The batches of these marks, which are consecutive, some hundred thousand rows at a time."""
    for part in _parts(marks):
        first, last = part[0].batch, part[-1].batch
        epochs = read(TableName.EPOCHS, first, last).to_pylist()
        plans = {row["batch"]: row for row in epochs if row["kind"] == PLAN}
        commits = {row["batch"]: row for row in epochs if row["kind"] == COMMIT}
        batches = [mark.batch for mark in part]
        tables = {name: _by_batch(read(name, first, last), batches) for name in _JUDGED}
        for mark in part:
            rows = {name: of[mark.batch] for name, of in tables.items()}
            yield RecordedRows(mark.batch, plans[mark.batch], commits[mark.batch], rows)


def _parts(marks: Sequence[BatchMark]) -> Iterator[list[BatchMark]]:
    part, rows = list[BatchMark](), 0
    for mark in marks:
        if part and rows + mark.entries > ROWS_AT_ONCE:
            yield part
            part, rows = [], 0
        part.append(mark)
        rows += mark.entries + 1
    if part:
        yield part


def _by_batch(rows: pa.Table, batches: Sequence[int]) -> dict[int, pa.Table]:
    names = [name for name in ("batch", "place") if name in rows.column_names]
    ordered = sorted_by(rows.combine_chunks(), *names)
    numbers = np.asarray(ordered["batch"].to_numpy(), dtype=np.int64)
    begins, ends = (np.searchsorted(numbers, batches, side).tolist() for side in ("left", "right"))
    slices = zip(batches, begins, ends, strict=True)
    return {batch: ordered.slice(begin, end - begin) for batch, begin, end in slices}


def sorted_by(rows: pa.Table, *names: str) -> pa.Table:
    """The rows sorted by these whole numbers; as they are if they are sorted, as most tables are.

    Looking costs a hundredth of sorting. Null comes last.
    """
    if _are_sorted(rows, names):
        return rows
    return rows.sort_by([(name, "ascending") for name in names]).combine_chunks()


def _are_sorted(rows: pa.Table, names: Sequence[str]) -> bool:
    if any(rows[name].null_count for name in names):
        return False
    is_after = np.ones(max(0, rows.num_rows - 1), dtype=np.bool_)
    for name in reversed(names):
        values = np.asarray(rows[name].to_numpy(), dtype=np.int64)
        is_after = (values[1:] > values[:-1]) | ((values[1:] == values[:-1]) & is_after)
    return bool(is_after.all())
