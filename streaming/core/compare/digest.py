"""The digest of a set of rows: how many there are, and the sum of their hashes."""

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass

RowHash = bytes
"""The MD5 of a row's text: every database computes it, and nobody here has to be kept out."""

LANE = 2**64
"""The halves of a hash are summed apart, each modulo this: SQL sums 64 bits without an overflow."""

LANES = struct.Struct(">QQ")
"""A hash as its halves."""


def row_hash(text: str) -> RowHash:
    """The hash of a row's text (row_text.py)."""
    return hash_of(text.encode())


def hash_of(text: bytes) -> RowHash:
    """The hash of a row's text in UTF-8."""
    return hashlib.md5(text, usedforsecurity=False).digest()


@dataclass(frozen=True, slots=True)
class RangeDigest:
    """The digest of rows in any order.

    It is a sum, so that of a range is the sum of those of its parts; and no two rows cancel each
    other, as they would in an exclusive or.
    """

    count: int = 0
    high: int = 0
    low: int = 0

    def plus(self, other: "RangeDigest") -> "RangeDigest":
        """The digest of these rows and other ones."""
        high, low = (self.high + other.high) % LANE, (self.low + other.low) % LANE
        return RangeDigest(self.count + other.count, high, low)


def digest_of(hashes: Iterable[RowHash]) -> RangeDigest:
    """The digest of the rows with these hashes."""
    count = high = low = 0
    for one in hashes:
        first, second = LANES.unpack(one)
        count, high, low = count + 1, high + first, low + second
    return RangeDigest(count, high % LANE, low % LANE)
