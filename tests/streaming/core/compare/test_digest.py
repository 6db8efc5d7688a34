"""The digest of a range is the sum of its parts', and equal only where the rows are."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.compare.digest import RangeDigest, digest_of, row_hash
from tests.harness.examples import examples

rows = st.lists(st.text(max_size=8), max_size=20)


@examples()
@given(rows, rows)
def test_the_digest_of_a_range_is_the_sum_of_its_parts(one: list[str], other: list[str]) -> None:
    """A range may be divided anywhere, and its parts may be asked for in any order."""
    first, second = (digest_of(map(row_hash, part)) for part in (one, other))

    assert first.plus(second) == second.plus(first) == digest_of(map(row_hash, one + other))


@examples()
@given(rows, rows)
def test_two_sides_have_one_digest_only_if_they_have_the_same_rows(
    one: list[str], other: list[str]
) -> None:
    """In any order; a row that stands twice counts twice, so no two cancel each other."""
    is_equal = digest_of(map(row_hash, one)) == digest_of(map(row_hash, other))

    assert is_equal == (sorted(one) == sorted(other))
    assert digest_of([]) == RangeDigest()
