"""Reads the matrix of the past: the hub's own row behind each hub epoch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deltalake import DeltaTable

from checkpoints.commit.epochs import Checkpoint, checkpoint_of, numbers_of
from checkpoints.commit.purges import ruvs_of
from checkpoints.query import records, select
from checkpoints.reading.reader import Reader
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


def numbers_at(epochs: DeltaTable | None, hub_epoch: int) -> NumberedEpoch:
    """The hub behind a hub epoch; of one that was never reached, behind the last one below it.

    `epochs`: the table, of a reader or of a hub's store.
    """
    for bound in (f"hub_epoch = {hub_epoch}", f"hub_epoch < {hub_epoch}"):
        where, order = [_COMMIT, bound], "hub_epoch DESC, batch"
        found = select(
            epochs, TableName.EPOCHS, columns=_COLUMNS, where=where, order_by=order, limit=1
        )
        for row in records(found):
            return NumberedEpoch(numbers_of(row), ruvs_of(row["ruv"]))
    return NumberedEpoch({}, {})


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
