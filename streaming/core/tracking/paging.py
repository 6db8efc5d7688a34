"""Pages of tracked rows: which row is sent as it stands, and where the next page begins."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from streaming.core.tracking.entry import HubPosition

Key = TypeVar("Key")
Order = Callable[[Key], Any]


class PageDecision(StrEnum):
    """What a page does with a row."""

    SEND = "send"
    """send it as it stands, its delete if it is a tombstone"""
    SEND_DELETE = "send_delete"
    """the hub has forgotten it: send its delete"""
    LEAVE_TO_LIVE = "leave_to_live"
    """it was written behind the end of the resync, so it is sent with the live batches"""
    INCONSISTENT = "inconsistent"
    """the log has a write of it that the row has not: send nothing, copy everything"""


def page_rule(tracked: HubPosition, row: HubPosition | None) -> PageDecision:
    """Decide about a tracked row from the position of its last write; None: there is no row.

    Both are of one incarnation of the table. INCONSISTENT is never sent over: the hub's state is
    not of the history that was tracked.
    """
    if row is None:
        return PageDecision.SEND_DELETE
    if row == tracked:
        return PageDecision.SEND
    return PageDecision.LEAVE_TO_LIVE if row > tracked else PageDecision.INCONSISTENT


def scan_rule(row: HubPosition, restart: HubPosition | None, end: HubPosition) -> PageDecision:
    """Decide about a row of a scan that is known to be needed from `restart` up to `end` only.

    Both bounds are in. A page that deletes what it does not hold must hold all rows of its range:
    its scan has no bounds.
    """
    is_needed = row <= end and (restart is None or restart <= row)
    return PageDecision.SEND if is_needed else PageDecision.LEAVE_TO_LIVE


def next_page(
    keys: Sequence[Key], page_rows: int, order: Order[Key], after: Key | None = None
) -> tuple[Key, ...]:
    """Return the keys of the page that follows `after` (None: the first); empty: there is none.

    keys: in the order of `order`. A page follows the last key that was sent, and nothing else:
    whoever goes on by position loses a row whose key is large and whose position is small.
    """
    begin = 0 if after is None else bisect_right(keys, order(after), key=order)
    return tuple(keys[begin : page_end(keys, begin + page_rows, order)])


def page_end(keys: Sequence[Key], end: int, order: Order[Key]) -> int:
    """Return where a page ends that is to end before this place: equal keys stay together.

    Keys may be equal by value and different rows, as decimals that differ in their trailing zeros;
    a page that ended between them would delete the later one as a stranger of its range.
    """
    if end >= len(keys):
        return len(keys)
    return bisect_right(keys, order(keys[end - 1]), lo=end, key=order)


def pages(keys: Iterable[Key], page_rows: int, order: Order[Key]) -> Iterator[tuple[Key, ...]]:
    """Return all keys in pages of at most `page_rows`, each key once, in order."""
    in_order = sorted(keys, key=order)
    page = next_page(in_order, page_rows, order)
    while page:
        yield page
        page = next_page(in_order, page_rows, order, page[-1])
