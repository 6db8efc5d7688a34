"""A table that is prepared for a resync is cut into pages that leave out nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.reading import resync_rows
from checkpoints.reading.resync_rows import SortedRows
from streaming.core.model.table import ColumnType, Table
from streaming.core.tracking.ranges import KeyRange, key_order
from streaming.core.tracking.resync import PageBound
from streaming.hub.resync.prepared_tables import OrderedKeys, PreparedTable
from tests.checkpoints.sorted_files import sorted_files
from tests.harness.examples import examples

T = Table("t", ("k",), {"k": ColumnType.DECIMAL})
ORDER = key_order(T)


def key(number: int) -> str:
    """The key of row `number`: two rows each are equal by value, 1 and 1.0 for instance."""
    return f'{{"k":"{number // 2}{".0" if number % 2 else ""}"}}'


numbers = st.sets(st.integers(0, 40))
bounds = st.none() | st.integers(0, 41)
PARTS = 4
"""How many rows are read at a time."""


@contextmanager
def sorted_rows(found: set[int]) -> Iterator[SortedRows]:
    """The rows of these numbers, in files of a few, read in small parts."""
    in_order = [key(n) for n in sorted(found)]
    files = [in_order[at : at + 7] for at in range(0, len(in_order), 7)]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(resync_rows, "READ_ROWS", PARTS)
        yield sorted_files(Path(folder) / "rows", ORDER, *files)


def written(found: set[int]) -> OrderedKeys:
    """The keys that were written since the rows were sorted."""
    touched = OrderedKeys(ORDER)
    touched.add(key(n) for n in found)
    return touched


# -- keys that were written since ----------------------------------------------------------------


@examples()
@given(st.lists(numbers, max_size=3), bounds, bounds)
def test_the_keys_of_a_range_are_found_in_the_order_of_keys(
    batches: list[set[int]], after: int | None, upto: int | None
) -> None:
    """However they came; one that is written again is there once."""
    touched, known = OrderedKeys(ORDER), set[int]().union(*batches)
    for batch in batches:
        touched.add(key(n) for n in batch)
    first, last = (None if n is None else key(n) for n in (after, upto))

    found = touched.between(first, last)

    keys = KeyRange("t", first, last)
    expected = {key(n) for n in known if keys.holds(key(n), ORDER)}
    assert set(found) == expected
    assert len(found) == len(expected)
    assert [ORDER(one) for one in found] == sorted(ORDER(one) for one in found)


# -- pages -----------------------------------------------------------------------------------


def pages(
    prepared: PreparedTable, page_rows: list[int]
) -> Iterator[tuple[PageBound, list[str], list[str]]]:
    """The pages of a table: where each ends, its sorted rows, and what was written since."""
    place = 0
    while True:
        room = page_rows[place % len(page_rows)]
        bound = prepared.bound(room)
        base = prepared.base(bound.upto, ORDER)["key"].to_pylist()
        touched = prepared.touched
        since = touched.between(prepared.rows.after, bound.upto) if touched else []
        yield bound, base, since
        if bound.upto is None:
            return
        assert prepared.goes_on(bound.upto)
        place += 1


@examples(60)
@given(numbers, st.none() | numbers, st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_each_row_is_on_one_page_and_so_is_each_key_that_was_written_since(
    found: set[int], since: set[int] | None, page_rows: list[int]
) -> None:
    """Whichever is between two others; keys that are equal by value are on one page."""
    with sorted_rows(found) as rows:
        prepared = PreparedTable(rows, None if since is None else written(since))

        all_pages = [*pages(prepared, page_rows)]

    in_order = [key for _, base, _ in all_pages for key in base]
    assert in_order == [key(n) for n in sorted(found)]
    new = [key for _, _, touched in all_pages for key in touched]
    assert sorted(new) == sorted(key(n) for n in since or ())
    for (bound, _, _), (_, base, touched) in pairwise(all_pages):
        assert bound.upto is not None
        assert all(ORDER(one) > ORDER(bound.upto) for one in (*base, *touched))


@examples(60)
@given(numbers, numbers, st.integers(1, 9))
def test_a_page_has_a_bounded_number_of_rows(found: set[int], since: set[int], room: int) -> None:
    """Of the sorted ones and of those that were written since; one more where keys are equal."""
    with sorted_rows(found) as rows:
        for bound, base, touched in pages(PreparedTable(rows, written(since)), [room]):
            assert len(base) <= room + 1
            assert len(touched) <= room + 1
            assert 0 <= bound.rows <= 2 * (room + 1)


@examples(60)
@given(numbers, st.integers(1, 9))
def test_a_page_of_tracked_rows_counts_them(found: set[int], room: int) -> None:
    """The room that it leaves is for the next table."""
    with sorted_rows(found) as rows:
        for bound, base, _ in pages(PreparedTable(rows, None), [room]):
            assert bound.rows == len(base)


def test_many_keys_that_are_equal_by_value_make_one_page(tmp_path: Path) -> None:
    """More than one part of a file is looked at to find its end."""
    zeros = [f'{{"k":"1.{"0" * n}"}}' for n in range(1, 30)]
    rows = sorted_files(tmp_path / "rows", ORDER, ['{"k":"0"}', *zeros], ['{"k":"2"}'])
    prepared = PreparedTable(rows, None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resync_rows, "READ_ROWS", PARTS)
        found = [*pages(prepared, [2])]

    assert [base for _, base, _ in found] == [['{"k":"0"}', *zeros], ['{"k":"2"}']]


# -- where it goes on --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "after", "goes_on"),
    [
        pytest.param(None, None, True, id="nothing is sent"),
        pytest.param(None, 4, True, id="behind a page that was sent"),
        pytest.param(4, 4, True, id="where it stands"),
        pytest.param(4, 2, False, id="rolled back"),
        pytest.param(4, None, False, id="from the beginning"),
    ],
)
def test_a_resync_that_was_rolled_back_sorts_its_rows_anew(
    tmp_path: Path, sent: int | None, after: int | None, *, goes_on: bool
) -> None:
    """The rows before are not in memory any more; the files go."""
    rows = sorted_files(tmp_path / "rows", ORDER, [key(n) for n in range(0, 10, 2)])
    prepared = PreparedTable(rows, None)
    if sent is not None:
        rows.move_past(key(sent))

    assert prepared.goes_on(None if after is None else key(after)) is goes_on

    assert (tmp_path / rows.folder).exists() is goes_on
    if goes_on:
        left = rows.next_rows(9)["key"].to_pylist()
        assert left == [key(n) for n in range(0, 10, 2) if after is None or n > after]
