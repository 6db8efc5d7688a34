"""Claims about numbers in words: one of them is no span."""

import pytest

from streaming.core.text.wording import as_numbered, as_range


@pytest.mark.parametrize(
    ("first", "last", "cell", "words"), [(2, 2, "2", "place 2"), (2, 5, "2-5", "places 2 to 5")]
)
def test_one_number_is_written_once(first: int, last: int, cell: str, words: str) -> None:
    """`lacks 2-2` reads as two changes, or as a fault."""
    assert (as_range(first, last), as_numbered("place", first, last)) == (cell, words)
