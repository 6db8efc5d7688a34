"""Digests of key ranges lead to exactly the rows that differ, by few questions."""

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.compare.difference import DifferenceKind, differing_rows
from streaming.core.compare.digest import RangeDigest, RowHash, row_hash
from streaming.core.compare.narrow import differing_keys, digested
from streaming.core.compare.row_text import Image, row_text
from streaming.core.compare.side import Images, RowsInMemory
from streaming.core.model.table import ColumnType, Table
from streaming.core.tracking.ranges import KeyRange
from tests.harness.examples import examples

T = Table("t", ("k",), {"k": ColumnType.INT64, "v": ColumnType.DECIMAL})
FIRST_ROWS, PARTS, LEAF_ROWS = 17, 3, 4

rows = st.dictionaries(st.integers(-60, 60), st.sampled_from(["1", "2", "2.5"]), max_size=80)


def key(number: int) -> str:
    """The key of a row."""
    return f'{{"k":"{number}"}}'


class AskedSide:
    """A side of few rows that counts the questions."""

    def __init__(self, values: Mapping[int, str]) -> None:
        self.asked = 0
        self.rows: dict[str, Image] = {
            key(number): {"k": str(number), "v": value} for number, value in values.items()
        }
        text = row_text(T)
        hashes = {of: row_hash(text(image)) for of, image in self.rows.items()}
        self.read = RowsInMemory(T, hashes.items(), self._read)
        self.bounds = self.read.bounds

    @property
    def images(self) -> Images:
        """Reads the rows of some keys."""
        return self._read

    def _read(self, keys: Collection[str]) -> dict[str, Image]:
        return {of: self.rows[of] for of in keys if of in self.rows}

    def digests(self, keys: KeyRange, bounds: Sequence[str]) -> list[RangeDigest]:
        """Count the question."""
        self.asked += 1
        return self.read.digests(keys, bounds)

    def hashes(self, keys: KeyRange) -> dict[str, RowHash]:
        """Count the question."""
        self.asked += 1
        return self.read.hashes(keys)


def narrowed(
    one: AskedSide,
    other: AskedSide,
    ignored: DifferenceKind | None = None,
    *,
    is_read: bool = False,
) -> Iterator[str]:
    """The keys that differ, in small parts; `is_read`: one side has its rows in memory."""
    first = one.read if is_read else one
    parts = digested(first, other, KeyRange("t"), FIRST_ROWS)
    return differing_keys(first, other, parts, PARTS, LEAF_ROWS, ignored)


@examples()
@given(rows, rows, st.booleans())
def test_exactly_the_rows_are_found_that_differ(
    ours: dict[int, str],
    theirs: dict[int, str],
    is_read: bool,  # noqa: FBT001
) -> None:
    """Whatever was lost, added or changed at either side, at the ends of a range too."""
    one, other = AskedSide(ours), AskedSide(theirs)

    found = list(narrowed(one, other, is_read=is_read))

    differ = {key(n) for n in ours.keys() | theirs if ours.get(n) != theirs.get(n)}
    assert sorted(found) == sorted(differ)


@examples()
@given(rows, st.lists(st.tuples(st.integers(-60, 60), st.sampled_from(["3", None])), max_size=5))
def test_a_side_is_asked_a_few_questions_for_each_row_that_differs(
    ours: dict[int, str], edits: list[tuple[int, str | None]]
) -> None:
    """Equal ranges are asked for once: what a comparison costs depends on what differs."""
    theirs = {n: v for n, v in (ours | dict(edits)).items() if v is not None}
    one, other = AskedSide(ours), AskedSide(theirs)

    found = list(narrowed(one, other))

    levels = math.ceil(math.log(max(len(ours), len(theirs), 1) + 1, PARTS)) + 1
    assert max(one.asked, other.asked) <= 1 + len(found) * (levels + 1)


def test_a_row_is_named_with_what_differs_in_it() -> None:
    """A decimal is compared by its value, a column that a side does not know is no difference."""
    one, other = AskedSide({1: "1", 2: "2.5", 4: "1"}), AskedSide({1: "1.0", 2: "2", 3: "1"})
    one.rows[key(4)] = {"k": "4"}
    other.rows[key(4)] = {"k": "4", "v": "7"}

    found = differing_rows(T, one.images, other.images, [key(n) for n in range(1, 6)])

    assert [(json.loads(row.key)["k"], row.kind, row.columns) for row in found] == [
        ("2", DifferenceKind.COLUMNS, ("v",)),
        ("3", DifferenceKind.ONLY_SECOND, ()),
    ]


def test_a_row_that_became_equal_is_left_out() -> None:
    """What was in flight at the first look differs from nothing; what still differs does."""
    one, other = AskedSide({1: "1", 2: "2"}), AskedSide({1: "2", 2: "1"})
    keys = list(narrowed(one, other))
    other.rows[key(1)] = one.rows[key(1)]

    found = differing_rows(T, one.images, other.images, keys)

    assert [row.key for row in found] == [key(2)]


@examples()
@given(rows, rows, st.sampled_from(DifferenceKind))
def test_rows_of_a_kind_that_does_not_matter_are_left_out(
    ours: dict[int, str], theirs: dict[int, str], ignored: DifferenceKind
) -> None:
    """An archive has rows that the hub does not have any more; the others are found among them."""
    one, other = AskedSide(ours), AskedSide(theirs)
    every = differing_rows(T, one.images, other.images, [*narrowed(one, other)])

    found = differing_rows(T, one.images, other.images, [*narrowed(one, other, ignored)], ignored)

    assert sorted(row.key for row in found) == sorted(
        row.key for row in every if row.kind is not ignored
    )
