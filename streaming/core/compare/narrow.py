"""From two sides of a table to the keys of the rows that differ, by few questions to each side."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from streaming.core.compare.difference import DifferenceKind
from streaming.core.compare.digest import RangeDigest
from streaming.core.compare.side import ComparedTable, RowsInMemory, parts_of
from streaming.core.tracking.ranges import KeyRange

FIRST_ROWS = 20_000
"""A table is divided into ranges of so many rows at first."""

PARTS = 32
"""Into about so many parts a range is divided."""

LEAF_ROWS = 25_000
"""A range of no more rows is read row by row: a little more than the other side's first ranges.

Who has no index in the order of the keys reads the whole table for each range.
"""


class DigestPair(NamedTuple):
    """A range with its digest at both sides."""

    keys: KeyRange
    one: RangeDigest
    other: RangeDigest

    @property
    def rows(self) -> int:
        """How many rows the side has that has more."""
        return max(self.one.count, self.other.count)


def digested(
    one: ComparedTable, other: ComparedTable, keys: KeyRange, first_rows: int = FIRST_ROWS
) -> list[DigestPair]:
    """A range with its digests, in parts, so that no row is read twice before one differs.

    Rows in memory are not divided: they would have to be ordered first.
    """
    is_read = isinstance(one, RowsInMemory) or isinstance(other, RowsInMemory)
    bounds = () if is_read else one.bounds(keys, first_rows)
    return _digested(one, other, keys, bounds)


def stepwise(
    one: ComparedTable, other: ComparedTable, keys: KeyRange, rows: int = FIRST_ROWS
) -> Iterator[DigestPair]:
    """Yield the parts of a range one by one, so that who takes them sets the pace.

    They are bounded by keys of the second side.
    """
    for part in parts_of(keys, other.bounds(keys, rows)):
        yield from _digested(one, other, part, ())


def differing_keys(
    one: ComparedTable,
    other: ComparedTable,
    pairs: Iterable[DigestPair],
    parts: int = PARTS,
    leaf_rows: int = LEAF_ROWS,
    ignored: DifferenceKind | None = None,
) -> Iterator[str]:
    """Yield the key of each row that one side lacks or has otherwise, in order of ranges.

    `ignored`: rows of this kind are left out.

    A range that differs is divided by keys of the side that has more rows, so that no part of it
    is large; equal parts are asked for once and never again.
    """
    open_ = [*reversed([*pairs])]
    while open_:
        pair = open_.pop()
        if pair.one == pair.other:
            continue
        found = _divided(one, other, pair, parts) if pair.rows > leaf_rows else []
        if any(part.rows >= pair.rows for part in found) or not found:
            yield from _by_row(one, other, pair.keys, ignored)
        else:
            open_.extend(reversed(found))


def _divided(
    one: ComparedTable, other: ComparedTable, pair: DigestPair, parts: int
) -> list[DigestPair]:
    larger = one if pair.one.count >= pair.other.count else other
    return _digested(one, other, pair.keys, larger.bounds(pair.keys, -(-pair.rows // parts)))


def _digested(
    one: ComparedTable, other: ComparedTable, keys: KeyRange, bounds: Sequence[str]
) -> list[DigestPair]:
    digests = one.digests(keys, bounds), other.digests(keys, bounds)
    return [DigestPair(*each) for each in zip(parts_of(keys, bounds), *digests, strict=True)]


def _by_row(
    one: ComparedTable, other: ComparedTable, keys: KeyRange, ignored: DifferenceKind | None
) -> Iterator[str]:
    mine, theirs = one.hashes(keys), other.hashes(keys)
    match ignored:
        case DifferenceKind.ONLY_FIRST:
            looked_at = theirs
        case DifferenceKind.ONLY_SECOND:
            looked_at = mine
        case _:
            looked_at = mine | theirs
    yield from (key for key in looked_at if mine.get(key) != theirs.get(key))
