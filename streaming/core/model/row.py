"""A row as it stands at the hub, and a change as it arrived there: what judging holds together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from streaming.core.model.change import NOBODY, Change, Op

ALL_OFFSETS = -1
"""A realign that blocks every change of its replica, wherever it stands in the topic."""


class Realign(NamedTuple):
    """A refresh of hub epoch `epoch` is on its way: what `rid` wrote without it is concurrent.

    `offset`: it blocks only changes that stand behind this place in the replica's topic.
    `whole`: the row went with its transaction, so who builds on it loses his whole one too.
    """

    rid: int
    epoch: int
    offset: int = ALL_OFFSETS
    rejects_transaction: bool = False

    def dominates(self, other: "Realign") -> bool:
        """Claim that what the other blocks is blocked by this one, and no less."""
        wider = self.epoch >= other.epoch and self.offset <= other.offset
        return (
            self.rid == other.rid
            and wider
            and self.rejects_transaction >= other.rejects_transaction
        )


@dataclass(frozen=True, slots=True)
class Floor:
    """All rows are realigned at `epoch` for changes behind `offset`: a hello that lost state.

    Its replica's own CSNs in (after, upto] stand before the hello and are given back.
    """

    epoch: int
    offset: int
    after: str = ""
    upto: str = ""

    def gives_back(self, csn: str) -> bool:
        """Claim that its replica lost this change of its own."""
        return self.after < csn <= self.upto


class RowState(NamedTuple):
    """A row as it stands at the hub; a tombstone or an unknown row has `exists` False.

    `image` is None where it is not known or not needed, and always for a tombstone.
    """

    author: int = NOBODY
    epoch: int = 0
    csn: str | None = None
    exists: bool = False
    image: str | None = None
    realign: tuple[Realign, ...] = ()


class Arrived(NamedTuple):
    """A change with the facts of its arrival; its MRE is fixed by what stood before it."""

    change: Change
    content: str
    session: str
    offset: int
    time_ms: int
    mre: int
    mre_same: int


def readable(image: str | None) -> str | None:
    """The image; None if it is not the text of an object.

    The first hubs accepted images that end in another byte than a brace, so old tables may hold
    some. Such a row counts as one whose image is unknown.
    """
    return image if image is None or image.endswith("}") else None


def realigned(row: RowState, new: Realign) -> RowState:
    """The row with a realign added; of one replica's, what another one dominates is left out."""
    if row.realign and any(r.dominates(new) for r in row.realign):
        return row
    kept = [r for r in row.realign if not new.dominates(r)]
    # `_replace` takes three times as long, and every conflict comes here
    return RowState(row.author, row.epoch, row.csn, row.exists, row.image, (*kept, new))


def blocking(arrived: Arrived, row: RowState) -> Iterator[Realign]:
    """The row's realigns that block a change which has not seen their hub epoch."""
    rid, offset = arrived.change.rid, arrived.offset
    return (r for r in row.realign if r.rid == rid and r.offset < offset)


def blocking_epoch(arrived: Arrived, row: RowState) -> int:
    """The largest hub epoch that its replica must have reflected before it may write the row."""
    return max((r.epoch for r in blocking(arrived, row)), default=0) if row.realign else 0


def follows(arrived: Arrived, row: RowState) -> bool:
    """Claim that the row is the replica's own last word, blocked by nothing newer than that word.

    So it knew the row when it wrote on, unless it had lost it.
    """
    return row.author == arrived.change.rid and row.epoch >= blocking_epoch(arrived, row)


def deletes_twice(change: Change, row: RowState) -> bool:
    """Claim that this is a delete of a deleted row, or of one that never was: nothing is lost."""
    return change.op is Op.DELETE and not row.exists
