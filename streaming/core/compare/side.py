"""A side of a comparison: what answers for the rows of one table, by ranges of keys."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from streaming.core.compare.digest import RangeDigest, RowHash, digest_of
from streaming.core.compare.row_text import Image
from streaming.core.model.table import Table
from streaming.core.tracking.ranges import KeyRange, listed_order

Images = Callable[[Collection[str]], dict[str, Image]]
"""Reads the rows of some keys as they stand now; a key without a row is not in it."""


class ComparedTable(Protocol):
    """The rows of a table at one side, as they stand when they are asked for.

    Keys are canonical text, and ordered as by core's `key_order`.
    """

    @property
    def images(self) -> Images:
        """Reads the rows of some keys."""

    def digests(self, keys: KeyRange, bounds: Sequence[str]) -> list[RangeDigest]:
        """The digest of each part of a range; see `parts_of`."""

    def bounds(self, keys: KeyRange, every: int) -> list[str]:
        """Each so many-th key of a range, in order."""

    def hashes(self, keys: KeyRange) -> dict[str, RowHash]:
        """The rows of a range, by key."""


OpenTable = Callable[[Table], ComparedTable]
"""The rows of a table at a side; ConfigError: it has no such table."""


def parts_of(keys: KeyRange, bounds: Sequence[str]) -> list[KeyRange]:
    """The parts of a range that end at these keys, and the last one, which ends where it does."""
    ends = [keys.after, *bounds, keys.to]
    return [KeyRange(keys.table, *pair) for pair in pairwise(ends)]


class RowsInMemory:
    """A side whose rows were read: of a hub, or of a database that cannot order the keys itself."""

    def __init__(self, table: Table, hashes: Mapping[str, RowHash], images: Images) -> None:
        self._hashes, self._order, self._images = hashes, listed_order(table), images
        self._keys: list[str] | None = None

    def digests(self, keys: KeyRange, bounds: Sequence[str]) -> list[RangeDigest]:
        """The digest of each part of a range; the whole table needs no order."""
        if not bounds and keys.after is None and keys.to is None:
            return [digest_of(self._hashes.values())]
        return [
            digest_of(map(self._hashes.__getitem__, self._within(part)))
            for part in parts_of(keys, bounds)
        ]

    def bounds(self, keys: KeyRange, every: int) -> list[str]:
        """Each so many-th key of a range, without those that are no keys of the table."""
        found = self._within(keys)[every - 1 :: every]
        return [key for key in found if not self._order(key)[0]]

    @property
    def images(self) -> Images:
        """Reads the rows of some keys, without those that were read before."""
        return self._images

    def hashes(self, keys: KeyRange) -> dict[str, RowHash]:
        """The rows of a range, by key."""
        return {key: self._hashes[key] for key in self._within(keys)}

    def _within(self, keys: KeyRange) -> list[str]:
        if self._keys is None:
            self._keys = sorted(self._hashes, key=self._order)
        first = 0 if keys.after is None else self._behind(self._keys, keys.after)
        end = len(self._keys) if keys.to is None else self._behind(self._keys, keys.to)
        return self._keys[first:end]

    def _behind(self, ordered: list[str], key: str) -> int:
        return bisect_right(ordered, self._order(key), key=self._order)
