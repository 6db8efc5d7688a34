"""Compare the tables of a batch with what replay gives: in columns, then fact by fact."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkpoints.commit.recorded import sorted_by
from checkpoints.tables import TableName
from streaming.core.conflict.judge import Verdict
from streaming.core.replay.compare import (
    Difference,
    Entry,
    EntryOf,
    differences,
    entry_of_conflict,
    entry_of_event,
    entry_of_log,
    entry_of_pending,
    entry_of_quarantine,
)
from streaming.stages.checked import Bools, bools, ints
from streaming.stages.log import CHANGE

ENTRY_OF: Mapping[TableName, EntryOf] = {
    TableName.CONFLICTS: entry_of_conflict,
    TableName.QUARANTINE: entry_of_quarantine,
    TableName.PENDING: entry_of_pending,
    TableName.EVENTS: entry_of_event,
}
"""How a row of each table is compared, besides the changelog."""

_SAME = ("csn", "rid", "table", "key", "verdict", "cause", "mre", "mre_same")
"""Columns of a judged change that are the same, or its entries are compared."""

_ROW = ("row_author", "row_epoch", "row_csn")


def different(
    recorded: Mapping[TableName, pa.Table], replayed: Mapping[TableName, pa.Table]
) -> list[Difference]:
    """All facts in which the tables of a batch differ."""
    name = TableName.CHANGELOG
    found = _different_log(recorded[name], replayed[name])
    for other, entry_of in ENTRY_OF.items():
        mine, theirs = recorded[other], replayed[other]
        if mine.num_rows or theirs.num_rows:
            found += differences(_entries(mine, entry_of), _entries(theirs, entry_of))
    return found


def _different_log(recorded: pa.Table, replayed: pa.Table) -> list[Difference]:
    mine, others = _changes_and_others(recorded)
    theirs, their_others = _changes_and_others(replayed)
    if mine.num_rows == theirs.num_rows:
        differ = pa.array(~_surely_equal(mine, theirs))
        mine, theirs = mine.filter(differ), theirs.filter(differ)
    return differences(
        [*_entries(mine, entry_of_log), *_entries(others, entry_of_log)],
        [*_entries(theirs, entry_of_log), *_entries(their_others, entry_of_log)],
    )


def _changes_and_others(log: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The judged changes in hub order; refreshes and ranges."""
    is_change = pc.equal(log["kind"], CHANGE)
    return sorted_by(log.filter(is_change), "place"), log.filter(pc.invert(is_change))


def _surely_equal(mine: pa.Table, theirs: pa.Table) -> Bools:
    """Mark the changes whose facts are equal; core's comparison decides of the others."""
    same = np.ones(mine.num_rows, dtype=np.bool_)
    for name in _SAME:
        same &= _equal(mine, theirs, name)
    accepted = bools(pc.equal(mine["verdict"], Verdict.ACCEPTED.value))
    same &= ~accepted | _equal(mine, theirs, "image")
    met = np.ones(mine.num_rows, dtype=np.bool_)
    for name in _ROW:
        met &= _equal(mine, theirs, name)
    same &= met | _not_looked_at(mine) | _not_looked_at(theirs)
    return np.asarray(same & (_blocked(mine) == _blocked(theirs)), dtype=np.bool_)


def _equal(mine: pa.Table, theirs: pa.Table, name: str) -> Bools:
    one, other = mine[name], theirs[name]
    both = pc.and_(pc.is_null(one), pc.is_null(other))
    return bools(pc.or_(pc.fill_null(pc.equal(one, other), False), both))  # noqa: FBT003


def _not_looked_at(log: pa.Table) -> Bools:
    return np.asarray((ints(log["row_epoch"]) == 0) & bools(pc.is_null(log["row_csn"])))


def _blocked(log: pa.Table) -> np.ndarray:
    """The realigns that blocked a change; one that its replica had reflected did not."""
    realign = ints(log["realign_epoch"])
    return np.where(realign > ints(log["mre"]), realign, 0)


def _entries(rows: pa.Table, of: EntryOf) -> Iterator[Entry]:
    return (of(row) for row in rows.to_pylist())
