"""Reads the matrix of the past: the hub's own row behind each hub epoch."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.dataset as ds

from checkpoints.commit.epochs import COMMIT, Checkpoint, checkpoint_of, numbers_of, ruvs_of
from checkpoints.query import records
from checkpoints.reading.reader import Reader
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from checkpoints.times import time_of
from streaming.core.matrix.rows import Row, is_within
from streaming.core.model.ruv import Ruv

_COMMIT = "kind = 'commit'"
_COLUMNS = ("numbers", "replicas", "ruv")


@dataclass(frozen=True, slots=True)
class NumberedEpoch:
    """The hub behind a hub epoch: its row of the matrix, and its RUVs by data set."""

    numbers: Row
    ruvs: Mapping[str, Ruv]


def numbers_at(reader: Reader, hub_epoch: int) -> NumberedEpoch:
    """The hub behind a hub epoch; of one that was never reached, behind the last one below it."""
    for bound in (f"hub_epoch = {hub_epoch}", f"hub_epoch < {hub_epoch}"):
        where = [_COMMIT, bound]
        order = "hub_epoch DESC, batch"
        found = reader.read(
            TableName.EPOCHS, columns=_COLUMNS, where=where, order_by=order, limit=1
        )
        for row in records(found):
            return _numbered(row)
    return NumberedEpoch({}, {})


def rows_behind(store: StateStore, hub_epochs: Collection[int]) -> dict[int, Row]:
    """Hub epoch -> the hub's own row behind it; of one that no commit is of: nothing."""
    store.refreshed(TableName.EPOCHS)
    where = (ds.field("kind") == COMMIT) & ds.field("hub_epoch").isin(sorted(hub_epochs))
    found = store.read(TableName.EPOCHS, where, ["batch", "hub_epoch", "numbers", "replicas"])
    rows = sorted(found.to_pylist(), key=lambda row: row["batch"], reverse=True)
    return {one: {} for one in hub_epochs} | {row["hub_epoch"]: numbers_of(row) for row in rows}


def first_within(reader: Reader, numbers: Row, after: int, upto: int) -> int | None:
    """The first hub epoch in [after, upto] whose row is the largest one within these numbers.

    Hub epochs that only refresh rows move no number: of those with one row the first is taken, for
    the refreshes behind it may be lost too (additions 7.5, FIRST). None: not even `after` is
    within.
    """
    where = [_COMMIT, f"hub_epoch >= {after}", f"hub_epoch <= {upto}"]
    columns = ("hub_epoch", "numbers", "replicas")
    found = reader.read(TableName.EPOCHS, columns=columns, where=where, order_by="batch")
    return _first_of_largest(
        ((row["hub_epoch"], numbers_of(row)) for row in records(found)), numbers
    )


def _first_of_largest(rows: Iterable[tuple[int, Row]], numbers: Row) -> int | None:
    """The first hub epoch of the last row within these numbers; rows only grow."""
    first: int | None = None
    largest: Row | None = None
    for hub_epoch, row in rows:
        if not is_within(row, numbers):
            break
        if largest is None or row != largest:
            first, largest = hub_epoch, row
    return first


def commit_before(reader: Reader, at_ms: int) -> Checkpoint | None:
    """The last commit of a batch that was planned before this time; None: there is none."""
    where = [_COMMIT, f"\"at\" < to_timestamp('{time_of(at_ms).isoformat()}')"]
    found = reader.read(TableName.EPOCHS, where=where, order_by="batch DESC", limit=1)
    return next((checkpoint_of(row) for row in records(found)), None)


def _numbered(row: Mapping[str, Any]) -> NumberedEpoch:
    return NumberedEpoch(numbers_of(row), ruvs_of(row["ruv"]))
