"""Rows as they stood at a hub epoch: `rows` as it was then, and the changelog behind it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from checkpoints.commit.epochs import Checkpoint, checkpoint_of
from checkpoints.commit.recorded import BatchMark, commit_of, judged_in, mark_at
from checkpoints.query import among, equals, scan, select
from checkpoints.reading.lookup import ACCEPTED, HUB_ORDER, KEYS_OF_A_QUERY, between
from checkpoints.reading.past import (
    PastStore,
    oldest_epoch,
    readable_version,
    rows_version,
)
from checkpoints.store import StateStore
from checkpoints.tables import ROWS, TableName
from streaming.core.model.errors import QuestionError
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.replay.span import Moment, epoch_at

STANDING = pa.schema([ROWS.field(name) for name in ("key", "author", "hub_epoch", "csn", "image")])
"""A row that stood: who wrote it, in which hub epoch, by which change, and what it was."""

_WRITTEN = ("hub_epoch", "place", "key", "rid", "csn", "image")


def travel_to(store: PastStore, marks: Sequence[BatchMark], moment: Moment | None) -> int:
    """Go to a moment, by default the last one; its hub epoch. QuestionError if that is gone."""
    newest = marks[-1].hub_epoch if marks else 0
    epoch = newest if moment is None else epoch_as_of(store, marks, moment)
    oldest = oldest_epoch(store, marks) - 1
    if epoch < min(oldest, newest):
        raise QuestionError(
            f"hub epoch {epoch} is not kept any more: the oldest one that can be shown is {oldest}"
        )
    commit = commit_behind(store, marks, epoch)
    if commit is not None:
        store.travel(commit)
    return epoch


def epoch_as_of(store: StateStore, marks: Sequence[BatchMark], moment: Moment) -> int:
    """The hub epoch of a moment; QuestionError if it never was, or is not there yet."""
    return epoch_at(marks, moment, lambda csn: judged_in(store, csn))


def commit_behind(
    store: StateStore, marks: Iterable[BatchMark], hub_epoch: int
) -> Checkpoint | None:
    """The last commit at a hub epoch or below it, the genesis before all; None: there is none."""
    mark = mark_at(marks, hub_epoch)
    row = commit_of(store, mark.batch if mark else 0)
    return None if row is None else checkpoint_of(row)


def rows_as_of(
    store: PastStore, table: str, hub_epoch: int, keys: Sequence[str] | None = None
) -> pa.Table:
    """STANDING: the rows of a table as they stood, by key; `keys`: only these.

    The store must have travelled there: `travel_to`.
    """
    older = _materialized(store, table, keys)
    return _standing(older, _written(store, table, store.rows_epoch, hub_epoch, keys))


def _materialized(store: PastStore, table: str, keys: Sequence[str] | None) -> pa.Table:
    """STANDING: the rows of a table, or these of them, as `rows` has them."""
    rows, where = store.table(TableName.ROWS), equals({"table": table})  # it has deletion vectors
    if keys is not None and len(keys) > KEYS_OF_A_QUERY:
        wanted = pa.array(keys, pa.string())
        found = scan(rows, TableName.ROWS, columns=STANDING.names, where=where)
        parts = [part.filter(pc.is_in(part["key"], wanted)) for part in found]
        return pa.concat_tables([STANDING.empty_table(), *parts])
    where += [] if keys is None else [among("key", keys)]
    return select(rows, TableName.ROWS, columns=STANDING.names, where=where)


@dataclass(frozen=True, slots=True)
class RowsBehindPurge:
    """The rows from which the changelog goes on: none, or `rows` of the oldest state that is kept.

    `epoch`: the hub epoch up to which they hold everything.
    """

    epoch: int = 0
    rows: DeltaTable | None = None

    def of(self, table: str) -> pa.Table:
        """STANDING: those of one table."""
        return select(
            self.rows, TableName.ROWS, columns=STANDING.names, where=[*equals({"table": table})]
        )

    def tables(self) -> set[str]:
        """The tables that have some."""
        found = select(self.rows, TableName.ROWS, columns=["table"])["table"]
        return set(pc.unique(found).to_pylist())


def rows_behind_purge(store: PastStore, commit: Checkpoint) -> RowsBehindPurge | None:
    """The rows as of the purge of a commit's state; None: that version of `rows` is gone."""
    state = commit.state
    if not state.purge_epoch:
        return RowsBehindPurge()
    oldest = commit_of(store, state.purge_batch)
    wanted = None if oldest is None else rows_version(checkpoint_of(oldest))
    found = None if wanted is None else readable_version(store.root, wanted.version)
    return None if wanted is None or found is None else RowsBehindPurge(wanted.rows_epoch, found)


def rows_of_changelog(
    store: PastStore, table: str, behind: RowsBehindPurge, hub_epoch: int
) -> pa.Table:
    """STANDING: the rows of a table as the changelog makes them, by key."""
    log = _written(store, table, behind.epoch, hub_epoch, None)
    return _standing(behind.of(table), log)


def _standing(older: pa.Table, log: pa.Table) -> pa.Table:
    """The rows behind a changelog that starts from older ones."""
    truncates = np.flatnonzero(np.asarray(pc.equal(log["key"], ALL_KEYS)))
    if len(truncates):
        older, log = older.slice(0, 0), log.slice(int(truncates[-1]) + 1)
    last = _last_of_each(log)
    kept = older.filter(pc.invert(pc.is_in(older["key"], last["key"].combine_chunks())))
    found = pa.concat_tables([kept, last])
    return found.filter(pc.is_valid(found["image"])).sort_by("key")


def _written(
    store: PastStore, table: str, after: int, to: int, keys: Sequence[str] | None
) -> pa.Table:
    """The accepted changes of the hub epochs (after, to], in hub order."""
    where = between(after, to) & ACCEPTED & (ds.field("table") == table)
    if keys is not None:
        where &= ds.field("key").isin([*keys, ALL_KEYS])
    return store.read(TableName.CHANGELOG, where, _WRITTEN).sort_by(HUB_ORDER)


def _last_of_each(log: pa.Table) -> pa.Table:
    numbered = log.select(["key"]).append_column("n", pa.array(np.arange(log.num_rows)))
    last = numbered.group_by("key").aggregate([("n", "max")])["n_max"]
    rows = log.take(last.combine_chunks())
    columns = [rows[name] for name in ("key", "rid", "hub_epoch", "csn", "image")]
    return pa.table(columns, names=STANDING.names).cast(STANDING)


def touched_keys(store: PastStore, table: str, after: int, to: int) -> list[str] | None:
    """The keys that were written in the hub epochs (after, to]; None: any, for a truncate."""
    where = between(after, to) & ACCEPTED & (ds.field("table") == table)
    keys = pc.unique(store.read(TableName.CHANGELOG, where, ["key"])["key"]).to_pylist()
    return None if ALL_KEYS in keys else keys
