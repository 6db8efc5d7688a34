"""A row at the hub, and a change as it arrived there: the input of judging."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from streaming.core.model.change import NOBODY, Change, Op

ALL_OFFSETS = -1
"""The offset of a realign that blocks every change of its replica, at any offset."""


class Realign(NamedTuple):
    """A refresh of hub epoch `epoch` is on its way: what `rid` wrote without it is concurrent.

    `offset`: it blocks only changes after this offset of the replica's topic.
    `rejects_transaction`: the row was rejected with its transaction, so a transaction that builds
    on it is rejected as a whole too. `is_of_range`: the row was in a range of keys that was sent;
    several pages of a range have one epoch, so that of this row may be an earlier one.
    """

    rid: int
    hub_epoch: int
    offset: int = ALL_OFFSETS
    rejects_transaction: bool = False
    is_of_range: bool = False

    def dominates(self, other: "Realign") -> bool:
        """Return whether this realign blocks everything that the other one blocks."""
        wider = self.hub_epoch >= other.hub_epoch and self.offset <= other.offset
        return (
            self.rid == other.rid
            and wider
            and self.rejects_transaction >= other.rejects_transaction
            and self.is_of_range <= other.is_of_range
        )


@dataclass(frozen=True, slots=True)
class Floor:
    """A hello that lost state: realigns all rows at `epoch` for changes after `offset`.

    The replica's own CSNs in (after, upto] precede the hello and are sent back to it.
    """

    hub_epoch: int
    offset: int
    after: str = ""
    upto: str = ""

    def gives_back(self, csn: str) -> bool:
        """Return whether the replica lost this change of its own."""
        return self.after < csn <= self.upto


class RowState(NamedTuple):
    """A row at the hub; a tombstone or an unknown row has `exists` False.

    `image` is None where it is not known or not needed, and always for a tombstone.
    """

    author: int = NOBODY
    hub_epoch: int = 0
    csn: str | None = None
    exists: bool = False
    image: str | None = None
    realign: tuple[Realign, ...] = ()


def without_tombstone(row: RowState, tombstone_epoch: int) -> RowState:
    """Return the row where tombstones up to this hub epoch may be purged: such a one is unknown.

    So it makes no difference whether it is gone already.
    """
    if row.exists or row.hub_epoch > tombstone_epoch:
        return row
    return RowState(realign=row.realign)


def with_image(row: RowState, image: str | None) -> RowState:
    """Return the row with this image."""
    # `_replace` takes three times as long
    return RowState(row.author, row.hub_epoch, row.csn, row.exists, image, row.realign)


class Arrived(NamedTuple):
    """A change with the facts of its arrival; its MRE follows from the records before it."""

    change: Change
    content: str
    session: str
    offset: int
    time_ms: int
    mre: int
    mre_same: int


def realigned(row: RowState, new: Realign) -> RowState:
    """Return the row with the realign added; realigns that it dominates are dropped."""
    if row.realign and any(r.dominates(new) for r in row.realign):
        return row
    kept = [r for r in row.realign if not new.dominates(r)]
    # `_replace` takes three times as long, and every conflict comes here
    return RowState(row.author, row.hub_epoch, row.csn, row.exists, row.image, (*kept, new))


def refreshed(row: RowState, sent: RowState, realign: Realign) -> RowState:
    """Return the row behind a refresh; `sent`: as it was sent, for a row that no entry wrote."""
    base = row if row.csn else sent._replace(realign=row.realign)
    return realigned(base, realign)


def blocking(arrived: Arrived, row: RowState) -> Iterator[Realign]:
    """Return the row's realigns that block this change, unless it has reflected their hub epoch."""
    rid, offset = arrived.change.rid, arrived.offset
    return (r for r in row.realign if r.rid == rid and r.offset < offset)


def blocking_epoch(arrived: Arrived, row: RowState) -> int:
    """The largest hub epoch that its replica must have reflected before it may write the row."""
    return max((r.hub_epoch for r in blocking(arrived, row)), default=0) if row.realign else 0


def follows(arrived: Arrived, row: RowState) -> bool:
    """Return whether the change follows its replica's own version of the row.

    The replica wrote the row's current version, and nothing newer than that version blocks the
    change. So it had seen that version, unless it had lost it.
    """
    return row.author == arrived.change.rid and row.hub_epoch >= blocking_epoch(arrived, row)


def deletes_twice(change: Change, row: RowState) -> bool:
    """Return whether this is a delete of a row that does not exist, so that nothing is lost."""
    return change.op is Op.DELETE and not row.exists
