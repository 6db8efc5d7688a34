"""Ranges of keys: what a scan sends and realigns as one, however many rows it has."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from streaming.core.model.errors import WireError
from streaming.core.model.foreign_json import loads
from streaming.core.model.row import ALL_OFFSETS, Realign
from streaming.core.model.table import Table
from streaming.core.model.values import comparable, from_json

SortKey = tuple[tuple[Any, ...], ...]
"""What keys are compared by: (is it a value, the value) for each key column."""

KeyOrder = Callable[[str], SortKey]
"""Canonical text of a key -> its sort key."""


def key_order(table: Table) -> KeyOrder:
    """Return the order of a table's keys: column by column, numbers and times by value.

    Text and bytes compare by their bytes; null comes first, and NaN behind all numbers. The
    function raises WireError for a text that is not a key of the table.
    """
    columns = [(name, table.columns[name]) for name in table.key]

    def order(key: str) -> SortKey:
        try:
            values = loads(key)
            return tuple(comparable(from_json(values[name], kind)) for name, kind in columns)
        except (ValueError, LookupError, TypeError, WireError) as error:
            raise WireError(f"{key} is not a key of table {table.name}: {error}") from error

    return order


def listed_order(table: Table) -> Callable[[str], tuple[Any, ...]]:
    """Return the same order for people, with a text that is not a key of the table at the end.

    It is one of other types, which the columns of the key had once.
    """
    order = key_order(table)

    def listed(key: str) -> tuple[Any, ...]:
        try:
            return False, order(key)
        except WireError:
            return True, key

    return listed


class KeyRange(NamedTuple):
    """The keys of a table with `after` < key <= `to`; None is an open end."""

    table: str
    after: str | None = None
    to: str | None = None

    def holds(self, key: str, order: KeyOrder) -> bool:
        """Return whether the key, of the same table, is in the range."""
        if self.after is None and self.to is None:
            return True
        place = order(key)
        behind = self.after is None or order(self.after) < place
        return behind and (self.to is None or place <= order(self.to))

    def contains(self, other: "KeyRange") -> bool:
        """Return whether each end of the other is this one's, or this one is open there."""
        begins = self.after is None or self.after == other.after
        ends = self.to is None or self.to == other.to
        return self.table == other.table and begins and ends

    def joined(self, following: "KeyRange") -> "KeyRange | None":
        """Return both ranges as one if the other begins where this one ends."""
        if self.table != following.table or self.to is None or self.to != following.after:
            return None
        return KeyRange(self.table, self.after, following.to)


@dataclass(frozen=True, slots=True)
class RangeRealign:
    """A range that is sent to replica `rid` from hub epoch `epoch` on: it realigns all its keys.

    Keys without a row are realigned too: the range deletes them there. `offset` and
    `rejects_transaction` as in `Realign`.
    """

    range: KeyRange
    rid: int
    hub_epoch: int
    offset: int = ALL_OFFSETS
    rejects_transaction: bool = False

    def as_realign(self) -> Realign:
        """Return the realign of each key in the range."""
        rejects = self.rejects_transaction
        return Realign(self.rid, self.hub_epoch, self.offset, rejects, is_of_range=True)

    def dominates(self, other: "RangeRealign") -> bool:
        """Return whether this one blocks everything that the other one blocks."""
        contains = self.range.contains(other.range)
        return contains and self.as_realign().dominates(other.as_realign())


def with_range(realigns: Iterable[RangeRealign], new: RangeRealign) -> tuple[RangeRealign, ...]:
    """Return the realigns with one more, which continues the one that ends where it begins.

    So a scan costs one entry, however many rows and pages it has. The joined range takes the
    larger hub epoch: `covers` stays where it is until the last page, and no reflection comes
    between the pages. What it dominates is dropped, so a table that is scanned again costs no more.
    Nothing else is dropped: what its replica wrote before it may come behind its acknowledgement
    (docs/traps.md, A journal ends behind the range that it had not seen).
    """
    kept = list(realigns)
    for place, old in enumerate(kept):
        is_alike = replace(old, range=new.range, hub_epoch=new.hub_epoch) == new
        joined = old.range.joined(new.range) if is_alike else None
        if joined is not None:
            new = replace(new, range=joined, hub_epoch=max(old.hub_epoch, new.hub_epoch))
            del kept[place]
            break
    return (*(old for old in kept if not new.dominates(old)), new)


def unapplied(realigns: Iterable[RangeRealign], rid: int, reached: int) -> frozenset[str]:
    """Return the tables of which a replica was sent ranges behind the hub epoch that it reached."""
    return frozenset(
        one.range.table for one in realigns if one.rid == rid and one.hub_epoch > reached
    )
