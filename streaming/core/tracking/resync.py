"""The resync of one agreement: what is committed of it, and what its pages send.

Everything up to `end` is brought by pages, which hold rows as they stand; everything behind it goes
live. Until the last page the consumer is told no more than it had at the beginning: `held`.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState
from streaming.core.model.ruv import Ruv
from streaming.core.model.truncation import Truncations
from streaming.core.tracking.progress import (
    Accounting,
    Piece,
    PieceAccount,
    ResyncMode,
    WorkKind,
    begin,
)
from streaming.core.tracking.ranges import KeyRange

Key = TypeVar("Key")


class CoveredPosition(NamedTuple):
    """What a consumer is told that it has: every hub epoch up to `covers`, and this RUV."""

    covers: int
    ruv: Ruv


class PlannedPage(NamedTuple):
    """The page of a resync that a batch sends; the plan of the batch holds it."""

    agreement: str
    parts: tuple[KeyRange, ...]


class PageRows(NamedTuple):
    """A part of a page, with what the hub found of it.

    `tracked`: of a part of kind PAGE, each key with the hub epoch in which it was tracked. `rows`:
    how many rows the part counts for. A part of any other kind is a range.
    """

    part: KeyRange
    kind: WorkKind
    rows: int
    tracked: tuple[tuple[str, int], ...] = ()


class ResyncPage(NamedTuple):
    """A page with its rows; `accounting`: as it is before the page, for the first one marks it.

    `uncarried`: the rows in its ranges that are listed so at its consumer, before the batch.
    """

    agreement: str
    accounting: Accounting
    parts: tuple[PageRows, ...]
    uncarried: frozenset[RowKey] = frozenset()


class UnackedPage(NamedTuple):
    """A page that its consumer has not reported as applied.

    `before`: the accounts of its ranges before it. A page of tracked rows stands in the changelog
    and is sent from there again; a range is read again.
    """

    hub_epoch: int
    before: tuple[PieceAccount, ...]


@dataclass(frozen=True, slots=True)
class Resync:
    """What is committed of a resync.

    `end`: changes of later hub epochs go live; None: the hub epoch of the batch that begins it.
    `held`: what the consumer is told until the last page. `accounting` None: the tables are not
    marked yet. `last_page`: the hub epoch of the last page; 0: it was not sent.
    """

    end: int | None
    held: CoveredPosition
    started_ms: int
    accounting: Accounting | None = None
    unacked: tuple[UnackedPage, ...] = ()
    last_page: int = 0

    def is_same(self, other: "Resync | None") -> bool:
        """Return whether the other is this resync, with the same pages sent."""
        return other is not None and (self.end, self.accounting) == (other.end, other.accounting)

    def is_sent(self, hub_epoch: int) -> bool:
        """Return whether the last page is sent, as far as all up to this hub epoch is."""
        return 0 < self.last_page <= hub_epoch

    def page_sent(self, page: ResyncPage, hub_epoch: int) -> "Resync":
        """Return the resync after the commit of a page; the last one closes it."""
        accounting = page.accounting
        ranges = [one.part.table for one in page.parts if one.kind.is_whole]
        before = tuple(a for a in accounting.accounts.values() if a.piece.table in ranges)
        for one in page.parts:
            table, _, upto = one.part
            accounting = accounting.page_sent(table, one.rows, upto, is_last=upto is None)
        return replace(
            self,
            accounting=accounting,
            unacked=(*self.unacked, UnackedPage(hub_epoch, before)),
            last_page=hub_epoch if accounting.is_finished else 0,
        )

    def reached(self, hub_epoch: int) -> "Resync":
        """Return the resync when its consumer has applied everything up to this hub epoch."""
        left = tuple(page for page in self.unacked if page.hub_epoch > hub_epoch)
        return self if left == self.unacked else replace(self, unacked=left)

    def rolled_back(self, hub_epoch: int) -> "Resync":
        """Return the resync as if no range behind this hub epoch had been sent."""
        kept = tuple(page for page in self.unacked if page.hub_epoch <= hub_epoch)
        if self.accounting is None or kept == self.unacked:
            return self
        accounts = dict(self.accounting.accounts)
        for page in reversed(self.unacked[len(kept) :]):
            accounts |= {account.piece.table: account for account in page.before}
        accounting = replace(self.accounting, accounts=accounts)
        last_page = self.last_page if accounting.is_finished else 0
        return replace(self, accounting=accounting, unacked=kept, last_page=last_page)

    def goes_on_behind(self, hub_epoch: int) -> "Resync":
        """Return the resync when all behind this hub epoch is sent again: ranges are read anew."""
        return self.rolled_back(hub_epoch).reached(hub_epoch)


class PageBound(NamedTuple):
    """Where the next page of a piece ends: at this key, None: with the last; and its rows."""

    upto: str | None
    rows: int


def planned_page(
    agreement: str, accounting: Accounting, bound: Callable[[Piece, int], PageBound], page_rows: int
) -> PlannedPage:
    """Return the next page: what is open, in order, up to so many rows.

    `bound`: of the next page of a piece, for so many rows.
    """
    parts, room = list[KeyRange](), page_rows
    for piece in (one.piece for one in accounting.accounts.values() if not one.is_closed):
        upto, rows = bound(piece, room)
        parts.append(KeyRange(piece.table, piece.after, upto))
        room -= rows
        if upto is not None or room <= 0:
            break
    return PlannedPage(agreement, tuple(parts))


def marked(
    tables: Iterable[str],
    tracked: Mapping[str, int],
    rows: Mapping[str, int],
    scans: Iterable[str],
    *,
    is_full: bool,
    started_ms: int,
) -> Accounting:
    """Return the accounting of a resync: each of the agreement's tables with its work, if it has.

    `tracked`: table -> how many rows its consumer lacks; of a table that it is not sent these are
    refreshes. `rows`: table -> how many rows it has; `scans`: the tables that are scanned (see
    `scanned`).
    """
    served, scanned = frozenset(tables), frozenset(scans)
    lacked = {name for name, count in tracked.items() if count}
    pieces = list[Piece]()
    for name in sorted(served | lacked):
        if is_full and name in served:
            pieces.append(Piece(name, WorkKind.FULL_COPY, rows.get(name, 0)))
        elif name in served & scanned:
            pieces.append(Piece(name, WorkKind.SCAN, rows.get(name, 0)))
        elif name in lacked:
            pieces.append(Piece(name, WorkKind.PAGE, tracked[name]))
    pieces.sort(key=lambda piece: not piece.kind.is_whole)
    mode = ResyncMode.FULL if is_full else ResyncMode.INCREMENTAL
    return begin(mode, started_ms // 1000, pieces)


def scanned(ordered: Iterable[str], truncations: Truncations, held_covers: int) -> frozenset[str]:
    """Return the tables that a resync scans: `ordered`, and those truncated behind its position."""
    behind = (table for table, one in truncations.items() if one.hub_epoch > held_covers)
    return frozenset((*ordered, *behind))


def goes_live(tracked_epoch: int, row: RowState) -> bool:
    """Return whether a tracked row was written again behind the end of the resync.

    Then it is sent with the live batches; any other goes as it stands, a tombstone as its delete.
    Rows have no place in hub order, so hub epochs are compared.
    """
    return row.hub_epoch > tracked_epoch


def page_end(keys: Sequence[Key], end: int, order: Callable[[Key], Any]) -> int:
    """Return where a page ends that is to end before this place: equal keys stay together.

    Keys may be equal by value and different rows, as decimals that differ in their trailing zeros;
    a page that ended between them would delete the later one as a stranger of its range.
    """
    if end >= len(keys):
        return len(keys)
    return bisect_right(keys, order(keys[end - 1]), lo=end, key=order)
