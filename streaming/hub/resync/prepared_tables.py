"""A table whose rows are sorted for a resync: where its next page ends, and what is in it."""

from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from checkpoints.reading.resync_rows import SortedRows
from streaming.core.tracking.ranges import KeyOrder
from streaming.core.tracking.resync import PageBound, page_end


@dataclass(slots=True)
class OrderedKeys:
    """Some keys of a table, in the order of keys, to which others are added."""

    order: KeyOrder
    places: list[tuple[Any, str]] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def add(self, keys: Iterable[str]) -> None:
        """Add keys."""
        for key in keys:
            if key not in self.known:
                self.known.add(key)
                insort(self.places, (self.order(key), key))

    def between(self, after: str | None, upto: str | None) -> list[str]:
        """The keys with after < key <= upto; None is an open end."""
        begin = self._behind(after) if after is not None else 0
        end = self._behind(upto) if upto is not None else len(self.places)
        return [key for _, key in self.places[begin:end]]

    def _behind(self, key: str) -> int:
        return bisect_right(self.places, self.order(key), key=lambda one: one[0])


@dataclass(slots=True)
class PreparedTable:
    """A table whose rows are sorted; `touched`: the keys that were written since, of a scan."""

    rows: SortedRows
    touched: OrderedKeys | None

    def bound(self, room: int) -> PageBound:
        """Where the next page of so many rows ends."""
        keys = self.rows.next_rows(room + 1)["key"].to_pylist()
        end = page_end(keys, room, self.rows.order)
        while end == len(keys) > room:  # keys that are equal by value: look further
            more = self.rows.next_rows(len(keys) + room)["key"].to_pylist()
            if len(more) == len(keys):
                break
            keys, end = more, page_end(more, room, self.rows.order)
        upto = None if end == len(keys) else keys[end - 1]
        written = self.touched.between(self.rows.after, upto) if self.touched else []
        if len(written) <= room:
            return PageBound(upto, end + len(written))
        last = page_end(written, room, self.rows.order)  # more was written than a page holds
        return PageBound(written[last - 1], room) if last < len(written) else PageBound(upto, end)

    def goes_on(self, after: str | None) -> bool:
        """Go on behind a page that was sent; False: the resync was rolled back, so sort again."""
        rows = self.rows
        if rows.after == after:
            return True
        if after is None or (rows.after and rows.order(rows.after) > rows.order(after)):
            rows.remove()
            return False
        rows.move_past(after)
        return True

    def base(self, upto: str | None, order: KeyOrder) -> pa.Table:
        """The sorted rows behind the last page up to this key; None: all that are left."""
        rows = self.rows.next_rows(1)
        while True:
            keys = rows["key"].to_pylist()
            end = len(keys) if upto is None else bisect_right(keys, order(upto), key=order)
            more = self.rows.next_rows(rows.num_rows + 1)
            if end < len(keys) or more.num_rows == rows.num_rows:
                return rows.slice(0, end)
            rows = more
