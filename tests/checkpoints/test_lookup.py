"""Images that are kept in memory: the newest of them, and no more than allowed."""

from sys import getsizeof

import pytest

from checkpoints.lookup import Images
from streaming.core.model.row import RowState

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
