"""A side of a comparison: what answers for the rows of one table, by ranges of keys."""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any, Protocol

from streaming.core.compare.digest import LANES, RangeDigest, RowHash, digest_of
from streaming.core.compare.row_text import Image
from streaming.core.model.table import Table
from streaming.core.tracking.ranges import KeyRange, listed_order

HASH_BYTES = LANES.size

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
    """A side whose rows were read: of a hub, or of a database that cannot order the keys itself.

    They stand packed one behind the other: in a dictionary they take three times as much.
    """

    def __init__(self, table: Table, rows: Iterable[tuple[str, RowHash]], images: Images) -> None:
        self._order, self._images = listed_order(table), images
        keys, ends, hashes = bytearray(), array("Q", [0]), bytearray()
        for key, hash_ in rows:
            keys += key.encode(errors="surrogatepass")
            ends.append(len(keys))
            hashes += hash_
        self._keys, self._ends, self._hashes = keys, ends, hashes
        self._ordered: Sequence[int] | None = None

    def digests(self, keys: KeyRange, bounds: Sequence[str]) -> list[RangeDigest]:
        """The digest of each part of a range; the whole table needs no order."""
        if not bounds and keys.after is None and keys.to is None:
            return [digest_of(map(self._hash, range(len(self._ends) - 1)))]
        return [digest_of(map(self._hash, self._within(part))) for part in parts_of(keys, bounds)]

    def bounds(self, keys: KeyRange, every: int) -> list[str]:
        """Each so many-th key of a range, without those that are no keys of the table."""
        found = map(self._key, self._within(keys)[every - 1 :: every])
        return [key for key in found if not self._order(key)[0]]

    @property
    def images(self) -> Images:
        """Reads the rows of some keys, without those that were read before."""
        return self._images

    def hashes(self, keys: KeyRange) -> dict[str, RowHash]:
        """The rows of a range, by key."""
        return {self._key(place): self._hash(place) for place in self._within(keys)}

    def _key(self, place: int) -> str:
        start, end = self._ends[place : place + 2]
        return self._keys[start:end].decode(errors="surrogatepass")

    def _hash(self, place: int) -> RowHash:
        return bytes(self._hashes[HASH_BYTES * place : HASH_BYTES * (place + 1)])

    def _within(self, keys: KeyRange) -> Sequence[int]:
        """The places of the rows of a range, in the order of their keys."""
        if self._ordered is None:
            places = range(len(self._ends) - 1)
            self._ordered = array("Q", sorted(places, key=self._order_at))
        first = 0 if keys.after is None else self._behind(self._ordered, keys.after)
        end = len(self._ordered) if keys.to is None else self._behind(self._ordered, keys.to)
        return self._ordered[first:end]

    def _behind(self, ordered: Sequence[int], key: str) -> int:
        return bisect_right(ordered, self._order(key), key=self._order_at)

    def _order_at(self, place: int) -> tuple[Any, ...]:
        return self._order(self._key(place))
