"""Judge one change on one row, by the max-replicated-epoch and author rule."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from streaming.core.conflict.winner import Failed, Merged, Resolution, Winner, winner
from streaming.core.model.change import Change, Op
from streaming.core.model.foreign_json import loads
from streaming.core.model.function import ConflictFunction, ConflictRule
from streaming.core.model.row import (
    Arrived,
    Floor,
    Realign,
    RowState,
    blocking,
    blocking_epoch,
    deletes_twice,
    follows,
    realigned,
)
from streaming.core.model.table import Table, not_configured
from streaming.core.model.values import json_text
from streaming.core.records.record import RECORD_BYTES, Reason


class Verdict(StrEnum):
    """The outcome of judging a change."""

    ACCEPTED = "accepted"
    """it is the current version of the row"""
    ADOPTED = "adopted"
    """it is a row of a snapshot that is equal to the row, which is unchanged: nothing was lost"""
    REJECTED = "rejected"
    """the row is unchanged; the loser is in `conflicts`"""
    QUARANTINED = "quarantined"
    """its function failed or the row would be too large: in quarantine, the row is unchanged"""


class Cause(StrEnum):
    """Why a change was in conflict."""

    AUTHOR = "author"
    """another replica wrote the row, and the change's replica had not seen that"""
    REALIGN = "realign"
    """a refresh of the row was on its way to the change's replica"""
    REFUSED = "refused"
    """the change's replica had refused the row as it stood, so it had not seen it"""
    FLOOR = "floor"
    """the change's replica had lost state, and had not received it back"""
    TRANSACTION = "transaction"
    """another row of its transaction was in conflict"""


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
    TRANSACTION = "transaction"
    """the change was rejected with its whole transaction"""
    TRUNCATE = "truncate"
    """a truncate met a row, or a refresh on its way, that its replica had not seen"""
    REFUSED = "refused"
    """the database of a replica did not take the row; no change lost at the hub"""


class Judged(NamedTuple):
    """A change, its verdict, and the row before and after.

    `cause`: why it was in conflict; None: it was not. `conflict`: how the loss is recorded; None:
    nobody lost. `same_epoch_only`: it would be in no conflict if reflections of its own epoch
    counted. `failure`: why it is in quarantine.
    """

    arrived: Arrived
    verdict: Verdict
    cause: Cause | None
    realign_epoch: int
    before: RowState
    after: RowState
    conflict: ConflictKind | None = None
    same_epoch_only: bool = False
    failure: Failed | None = None

    @property
    def concurrent(self) -> bool:
        """Return whether the change itself was concurrent, apart from its transaction."""
        return self.cause not in (None, Cause.TRANSACTION)

    @property
    def row_lost(self) -> bool:
        """Return whether the change won over a concurrent version of the row."""
        return self.conflict is not None and self.verdict is Verdict.ACCEPTED


Resolve = Callable[[Arrived, RowState, Table], Resolution]
"""Resolves a conflict between a change and its row."""


def by_function(arrived: Arrived, row: RowState, table: Table) -> Resolution:
    """What the table's function decides, where it is none of the user's."""
    return winner(arrived, row, table, None)


def judge(
    arrived: Arrived,
    row: RowState,
    hub_epoch: int,
    table: Table,
    floors: Sequence[Floor] = (),
    resolve: Resolve = by_function,
    record_bytes: int = RECORD_BYTES,
    *,
    is_refused: bool = False,
) -> Judged:
    """Judge one change on its row at this place in hub order (docs/protocol.md, Judging).

    A row epoch equal to the MRE is not concurrent; equal content makes no difference. A concurrent
    change realigns its replica, whoever wins: the replica is sent the row, or the replicas would
    diverge. A change that is not concurrent and makes a row that cannot be sent, because it is
    larger than `record_bytes`, is uncarried: it stays at its replica, which is sent nothing.
    A row of a snapshot that meets neither a row nor a tombstone wins. One that meets a row which
    its replica refused loses, whatever the function: that database never held the row, as where it
    got a column later than the others.
    """
    blocked = realign_epoch_of(arrived, row, floors)
    if adopts(arrived, row, table):
        return Judged(arrived, Verdict.ADOPTED, None, blocked, row, row)
    function = table.function
    cause = cause_of(arrived, row, function, floors, is_refused=is_refused)
    same = cause is not None and (
        cause_of(arrived, row, function, floors, is_refused=is_refused, same_epoch=True) is None
    )
    is_first = meets_nothing(arrived, row)
    if is_refused and cause is not None and arrived.change.snapshot is not None and not is_first:
        resolution: Resolution = Winner.ROW
    else:
        resolution = Winner.CHANGE if cause is None or is_first else resolve(arrived, row, table)
    after = _resolved(arrived.change, row, hub_epoch, table, resolution, record_bytes)
    mark = Realign(arrived.change.rid, hub_epoch)
    if isinstance(after, Failed):
        stays = cause is None and after.reason.is_uncarried
        kept = row if stays else realigned(row, mark)
        return Judged(arrived, Verdict.QUARANTINED, cause, blocked, row, kept, None, same, after)
    if cause is None:
        return Judged(arrived, Verdict.ACCEPTED, None, blocked, row, after)
    after = realigned(after, mark)
    kind = conflict_kind(arrived.change.op, exists=row.exists)
    if resolution is Winner.ROW:
        return Judged(arrived, Verdict.REJECTED, cause, blocked, row, after, kind, same)
    is_lost = not is_first and _loses(row, arrived, table.function, floors)
    lost = kind if is_lost else None
    return Judged(arrived, Verdict.ACCEPTED, cause, blocked, row, after, lost, same)


def adopts(arrived: Arrived, row: RowState, table: Table) -> bool:
    """Return whether this is a row of a snapshot that is equal to the row as it stands."""
    change = arrived.change
    is_of_snapshot = change.snapshot is not None and row.exists and row.image is not None
    return is_of_snapshot and merged(row.image, change.after, tuple(table.columns)) == row.image


def meets_nothing(arrived: Arrived, row: RowState) -> bool:
    """Return whether this is a row of a snapshot, and nobody has written the row before."""
    return arrived.change.snapshot is not None and row.csn is None


def unconfigured(arrived: Arrived, row: RowState) -> Judged:
    """A change of a table that is not configured any more: in quarantine, the row stands.

    Like one that is quarantined when it is read for its table it has no refresh, and leaves the
    others of its transaction alone (docs/protocol.md, What is configured no more).
    """
    why = Failed(not_configured(arrived.change.table), Reason.TABLE)
    blocked = blocking_epoch(arrived, row)
    return Judged(arrived, Verdict.QUARANTINED, None, blocked, row, row, failure=why)


def rejected_whole(
    arrived: Arrived,
    row: RowState,
    hub_epoch: int,
    cause: Cause | None,
    floors: Sequence[Floor] = (),
    *,
    same_epoch_only: bool,
) -> Judged:
    """A change that goes with its transaction; `cause`: why it is in conflict itself, if it is."""
    after = realigned(row, Realign(arrived.change.rid, hub_epoch, rejects_transaction=True))
    return Judged(
        arrived,
        Verdict.REJECTED,
        cause or Cause.TRANSACTION,
        realign_epoch_of(arrived, row, floors),
        row,
        after,
        ConflictKind.TRANSACTION,
        same_epoch_only,
    )


def cause_of(
    arrived: Arrived,
    row: RowState,
    function: ConflictFunction,
    floors: Sequence[Floor] = (),
    *,
    is_refused: bool,
    same_epoch: bool = False,
) -> Cause | None:
    """Why the change is concurrent with the row; None: it is not.

    `floors`: those of its replica. `is_refused`: its replica had refused the row as it stands, of a
    truncate one of the rows. `same_epoch`: as if reflections of the change's own epoch counted too.
    """
    mre = arrived.mre_same if same_epoch else arrived.mre
    if row.author != arrived.change.rid and function.stored(row.hub_epoch) > mre:
        return Cause.AUTHOR
    if blocking_epoch(arrived, row) > mre:
        return Cause.REALIGN
    if is_refused:
        return Cause.REFUSED
    return Cause.FLOOR if floor_epoch(arrived, floors) > mre else None


def rejects_transaction(
    arrived: Arrived,
    row: RowState,
    function: ConflictFunction,
    floors: Sequence[Floor] = (),
    *,
    is_refused: bool,
    is_left: bool,
) -> bool:
    """Return whether this change makes its whole transaction be rejected.

    It does if it is concurrent under EPOCH_TRANS and not a delete of a deleted row, or if it
    builds on a row that was rejected with its transaction, whatever the row's function; so does
    one whose replica refused the refresh of that row (`is_left`: it refused the row, and had then
    what it had before), whoever wrote it since.
    """
    if row.realign and _lacks_rejection(arrived, row, is_left=is_left):
        return True
    if function.rule is not ConflictRule.EPOCH_TRANS or deletes_twice(arrived.change, row):
        return False
    return cause_of(arrived, row, function, floors, is_refused=is_refused) is not None


def _lacks_rejection(arrived: Arrived, row: RowState, *, is_left: bool) -> bool:
    """Return whether a version that was rejected with its transaction may still be there."""
    ahead = [r.hub_epoch for r in blocking(arrived, row) if r.rejects_transaction]
    return any(epoch > arrived.mre for epoch in ahead) or (bool(ahead) and is_left)


def floor_epoch(arrived: Arrived, floors: Sequence[Floor]) -> int:
    """The largest hub epoch that its replica must have reflected before it may write any row."""
    return max((f.hub_epoch for f in floors if f.offset < arrived.offset), default=0)


def realign_epoch_of(arrived: Arrived, row: RowState, floors: Sequence[Floor]) -> int:
    """The hub epoch of the largest realign that stands before the change, or floor; else 0.

    A floor that its replica has reflected is no fact of the change: it stays for ever.
    """
    floor = floor_epoch(arrived, floors)
    return max(blocking_epoch(arrived, row), floor if floor > arrived.mre else 0)


def _loses(
    row: RowState, arrived: Arrived, function: ConflictFunction, floors: Sequence[Floor]
) -> bool:
    """Return whether the winning change overwrites a version that its replica had not seen.

    A replica that overwrites its own last change loses nothing, unless it had lost that change.
    Two deletes lose nothing. A merge of a user's function may keep both.
    """
    if function.rule is ConflictRule.USER:
        return True
    had_lost = any(f.offset < arrived.offset and f.gives_back(row.csn or "") for f in floors)
    unseen = had_lost or not follows(arrived, row)
    return unseen and not deletes_twice(arrived.change, row)


def conflict_kind(op: Op, *, exists: bool) -> ConflictKind:
    """Return the kind of a conflict, by the change's operation and the row that it met."""
    if op is Op.DELETE:
        return (
            ConflictKind.DELETE_RECENTLY_UPDATED if exists else ConflictKind.DELETE_RECENTLY_DELETED
        )
    if not exists:
        return ConflictKind.UPDATE_RECENTLY_DELETED
    return ConflictKind.INSERT_EXISTS if op is Op.INSERT else ConflictKind.UPDATE_ORIGIN_CHANGE


def _resolved(
    change: Change,
    row: RowState,
    hub_epoch: int,
    table: Table,
    resolution: Resolution,
    record_bytes: int,
) -> RowState | Failed:
    """The row after the change as it was resolved, realigns as before."""
    if isinstance(resolution, Failed):
        return resolution
    if resolution is Winner.ROW:
        return row
    if not change.op.has_image:
        return RowState(change.rid, hub_epoch, change.csn, realign=row.realign)
    columns = tuple(table.columns)
    if row.exists and row.image is None and _lacks_columns(change, columns):
        return Failed(
            "it lacks columns, and the image of its row at the hub cannot be read: write the whole"
            " row again",
            Reason.TABLE,
        )
    image, reason = merged(row.image, change.after, columns), Reason.SIZE
    if isinstance(resolution, Merged):
        image, reason = resolution.image, Reason.FUNCTION
    if image != change.after and (size := len(f"{change.key}{image}".encode())) > record_bytes:
        return Failed(f"the row would have {size} bytes, {record_bytes} are allowed", reason)
    return RowState(change.rid, hub_epoch, change.csn, True, image, row.realign)  # noqa: FBT003


def _lacks_columns(change: Change, columns: Sequence[str]) -> bool:
    return change.after is not None and len(loads(change.after)) < len(columns)


def merged(old: str | None, new: str | None, columns: Sequence[str]) -> str | None:
    """The new image over the old one: what is absent from the new one stays as it was."""
    if old is None or new is None:
        return new
    values = loads(new)
    if len(values) == len(columns):
        return new
    both = {**loads(old), **values}
    return json_text({name: both[name] for name in columns if name in both})
