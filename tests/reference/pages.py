"""The measure of hub/resync/prepared_tables.py: the pages of keys that are all in memory."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from streaming.core.tracking.ranges import KeyOrder, KeyRange, RangeRealign
from streaming.core.tracking.resync import PageBound, page_end


class ScannedPage(NamedTuple):
    """A range and all keys in it, in order; whoever applies it deletes the others."""

    range: KeyRange
    keys: tuple[str, ...]


def bound_of(keys: Sequence[str], room: int, order: KeyOrder) -> PageBound:
    """Return the bound of a page of `room` rows; `keys`: what is left, in the order of keys."""
    end = page_end(keys, room, order)
    return PageBound(None if end == len(keys) else keys[end - 1], end)


def scanned_page(
    table: str, keys: Sequence[str], order: KeyOrder, after: str | None, page_rows: int
) -> ScannedPage:
    """Return the page of a scan that follows the key `after` (None: the first).

    keys: all keys of the table as they are now, in the order of keys. The last page has an open
    end, so strangers behind the last key are deleted too, and so is all of an empty table.
    """
    begin = 0 if after is None else bisect_right(keys, order(after), key=order)
    left = keys[begin:]
    upto, rows = bound_of(left, page_rows, order)
    return ScannedPage(KeyRange(table, after, upto), tuple(left[:rows]))


def scanned_pages(
    table: str, keys: Sequence[str], order: KeyOrder, page_rows: int, after: str | None = None
) -> Iterator[ScannedPage]:
    """Return all pages of a scan, behind the key `after`, of a table that does not change."""
    page = scanned_page(table, keys, order, after, page_rows)
    yield page
    while page.range.to is not None:
        page = scanned_page(table, keys, order, page.range.to, page_rows)
        yield page


def realigned_epoch(
    realigns: Iterable[RangeRealign], rid: int, table: str, key: str, order: KeyOrder
) -> int:
    """Return the largest hub epoch at which ranges realign this row for a replica; 0: none does."""
    epochs = (
        one.hub_epoch
        for one in realigns
        if one.rid == rid and one.range.table == table and one.range.holds(key, order)
    )
    return max(epochs, default=0)
