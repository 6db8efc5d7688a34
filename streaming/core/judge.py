"""Who wins: the max-replicated-epoch and author rule for one change on one row."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from streaming.core.change import NOBODY, Change, Op

ALL_OFFSETS = -1
"""A realign that blocks every change of its replica, wherever it stands in the topic."""


class Verdict(StrEnum):
    """What became of a change."""

    ACCEPTED = "accepted"
    """it is the row now"""
    REJECTED = "rejected"
    """the row stands as it was; the loser is in `conflicts`"""


class ConflictKind(StrEnum):
    """Conflict kinds as EDB Postgres Distributed names them."""

    INSERT_EXISTS = "insert_exists"
    """an insert met a row"""
    UPDATE_ORIGIN_CHANGE = "update_origin_change"
    """an update met a row that another replica wrote"""
    UPDATE_RECENTLY_DELETED = "update_recently_deleted"
    """an insert or update met a tombstone"""
    DELETE_RECENTLY_UPDATED = "delete_recently_updated"
    """a delete met a row that another replica wrote"""
    DELETE_RECENTLY_DELETED = "delete_recently_deleted"
    """a delete met a tombstone"""


@dataclass(frozen=True, slots=True)
class Realign:
    """A refresh of hub epoch `epoch` is on its way: what `rid` wrote without it is concurrent.

    `offset`: it blocks only changes that stand behind this place in the replica's topic.
    """

    rid: int
    epoch: int
    offset: int = ALL_OFFSETS


@dataclass(frozen=True, slots=True)
class RowState:
    """A row as it stands at the hub; a tombstone or an unknown row has `exists` False.

    `image` is None where it is not known or not needed, and always for a tombstone.
    """

    author: int = NOBODY
    epoch: int = 0
    csn: str | None = None
    exists: bool = False
    image: str | None = None
    realign: tuple[Realign, ...] = ()


@dataclass(frozen=True, slots=True)
class Arrived:
    """A change with the facts of its arrival; its MRE is fixed by what stood before it."""

    change: Change
    content: str
    session: str
    offset: int
    time_ms: int
    mre: int
    mre_same: int


@dataclass(frozen=True, slots=True)
class Judged:
    """A change, its verdict, and the row before and after."""

    arrived: Arrived
    verdict: Verdict
    concurrent: bool
    realign_epoch: int
    before: RowState
    after: RowState
    conflict: ConflictKind | None = None

    @property
    def same_epoch_only(self) -> bool:
        """Claim that only the rule that an epoch's own reflection does not count made it so."""
        return self.concurrent and not _is_concurrent(
            self.arrived, self.before, self.arrived.mre_same, self.realign_epoch
        )


def judge(
    arrived: Arrived, row: RowState, hub_epoch: int, columns: Sequence[str], floor: int = 0
) -> Judged:
    """Judge one change on its row at this place in hub order (design: section 3, step 4).

    A concurrent change loses under EPOCH: the row stays, the change's replica is realigned.
    Equality is not concurrent, equal content does not matter.
    """
    blocked = blocking_epoch(arrived, row, floor)
    if not _is_concurrent(arrived, row, arrived.mre, floor):
        after = _written(arrived.change, row, hub_epoch, columns)
        return Judged(arrived, Verdict.ACCEPTED, False, blocked, row, after)  # noqa: FBT003
    after = realigned(row, Realign(arrived.change.rid, hub_epoch))
    kind = conflict_kind(arrived.change.op, exists=row.exists)
    return Judged(arrived, Verdict.REJECTED, True, blocked, row, after, kind)  # noqa: FBT003


def _is_concurrent(arrived: Arrived, row: RowState, mre: int, floor: int) -> bool:
    foreign = row.author != arrived.change.rid and row.epoch > mre
    return foreign or blocking_epoch(arrived, row, floor) > mre


def blocking_epoch(arrived: Arrived, row: RowState, floor: int = 0) -> int:
    """The largest hub epoch that this replica must have reflected before it may write the row."""
    rid, offset = arrived.change.rid, arrived.offset
    epochs = (r.epoch for r in row.realign if r.rid == rid and r.offset < offset)
    return max(epochs, default=0) if not floor else max(max(epochs, default=0), floor)


def realigned(row: RowState, new: Realign) -> RowState:
    """The row with a realign added; of one replica's, what another one dominates is left out."""
    same = [r for r in row.realign if r.rid == new.rid]
    if any(r.epoch >= new.epoch and r.offset <= new.offset for r in same):
        return row
    dominated = [r for r in same if r.epoch <= new.epoch and r.offset >= new.offset]
    return replace(row, realign=(*(r for r in row.realign if r not in dominated), new))


def conflict_kind(op: Op, *, exists: bool) -> ConflictKind:
    """What a concurrent change is called, by its operation and what it met."""
    if op is Op.DELETE:
        return (
            ConflictKind.DELETE_RECENTLY_UPDATED if exists else ConflictKind.DELETE_RECENTLY_DELETED
        )
    if not exists:
        return ConflictKind.UPDATE_RECENTLY_DELETED
    return ConflictKind.INSERT_EXISTS if op is Op.INSERT else ConflictKind.UPDATE_ORIGIN_CHANGE


def _written(change: Change, row: RowState, hub_epoch: int, columns: Sequence[str]) -> RowState:
    image = None if change.op is Op.DELETE else merged(row.image, change.after, columns)
    return RowState(
        change.rid, hub_epoch, change.csn, change.op is not Op.DELETE, image, row.realign
    )


def merged(old: str | None, new: str | None, columns: Sequence[str]) -> str | None:
    """The new image over the old one: what is absent from the new one stays as it was."""
    if old is None or new is None:
        return new
    values = json.loads(new)
    if len(values) == len(columns):
        return new
    both = {**json.loads(old), **values}
    ordered = {name: both[name] for name in columns if name in both}
    return json.dumps(ordered, separators=(",", ":"), ensure_ascii=False)
