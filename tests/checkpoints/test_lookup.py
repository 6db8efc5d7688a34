"""Rows that are looked up, and images that are kept in memory: no more than allowed."""

from pathlib import Path
from sys import getsizeof

import pytest

from checkpoints.reading.lookup import Images, rows
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.model.row import RowState
from tests.checkpoints.written_state import WrittenState

SIZE = getsizeof("image 0")


def row(number: int, image: str | None = None) -> RowState:
    """A row version with this CSN, and an image of SIZE bytes."""
    return RowState(1, 1, f"{number:020}", exists=True, image=image or f"image {number}")


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_oldest_image_goes_first(limit: int) -> None:
    """A hub that runs for a year must not keep every image that it saw."""
    kept = Images(limit * SIZE)

    kept.keep(row(number) for number in range(5))

    found = [kept.of(row(number)) for number in range(5)]
    assert found == [None] * (5 - limit) + [f"image {n}" for n in range(5 - limit, 5)]


def test_an_image_that_is_used_again_stays() -> None:
    """Kept anew it is the newest, and counts once."""
    kept = Images(2 * SIZE)

    kept.keep([row(0), row(1), row(0), row(2)])

    assert [kept.of(row(number)) for number in range(3)] == ["image 0", None, "image 2"]


def test_what_is_larger_than_all_is_not_kept() -> None:
    """Nor does it stand in the way of what comes."""
    kept = Images(SIZE)

    kept.keep([row(0, "a long image")])
    assert kept.of(row(0)) is None
    kept.keep([row(1)])

    assert kept.of(row(1)) == "image 1"


def test_a_row_without_a_version_or_an_image_has_none() -> None:
    """A row that nobody has written, and one that is deleted."""
    kept = Images(SIZE)

    kept.keep([RowState(0, 0, None, exists=False, image=None)])

    assert kept.of(RowState(0, 0, None, exists=False, image=None)) is None


def test_as_many_rows_are_found_as_are_asked_for(tmp_path: Path) -> None:
    """A flood of bad changes repairs 100,000 rows in one batch; it must not end the process."""
    state = WrittenState(tmp_path).create()
    keys = [("t", f'{{"k":"{number}"}}') for number in range(40_000)]
    unknown = [("u", key) for _, key in keys[:10]]
    state.append(
        TableName.ROWS,
        *(
            {"table": table, "key": key, "author": 1, "hub_epoch": 7, "csn": "c"}
            for table, key in keys
        ),
    )

    found = rows(StateStore(tmp_path), [*keys, *unknown])

    assert found.keys() == set(keys)
    assert {row.hub_epoch for row in found.values()} == {7}
