"""Claims about rows of the matrix."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.matrix.rows import NumberRange, counted, is_within, lacking, moved
from tests.reference.matrix import changes, raised

ROWS = st.dictionaries(st.integers(1, 4), st.integers(0, 9))


@given(own=ROWS, row=ROWS)
def test_what_is_sent_raises_the_row_to_the_own_one(
    own: dict[int, int], row: dict[int, int]
) -> None:
    """So a second export right behind the first is empty; nothing is ever taken back by one."""
    sent = lacking(own, row)
    after = raised(row, sent)

    assert lacking(own, after) == {}
    assert all(after.get(o, 0) == max(own.get(o, 0), row.get(o, 0)) for o in {*own, *row})
    assert all(span.first == row.get(origin, 0) + 1 for origin, span in sent.items())


@given(before=ROWS, after=ROWS)
def test_a_row_that_is_set_tells_each_column_that_moves(
    before: dict[int, int], after: dict[int, int]
) -> None:
    """And no other, so that an operator sees all that he does."""
    becomes = {column.origin: column.after for column in moved(before, after)}

    for origin in {*before, *after}:
        assert becomes.get(origin, before.get(origin, 0)) == after.get(origin, 0)
    assert all(column.before != column.after for column in moved(before, after))


@given(st.lists(st.integers(1, 20), max_size=8))
def test_numbers_never_go_back(opnos: list[int]) -> None:
    """A row is raised only; an origin that was restored may number changes again."""
    number, seen = 0, list[int]()
    for opno in opnos:
        number = counted(number, opno)
        seen.append(number)

    assert seen == sorted(seen)
    assert number == max(opnos, default=0)


def test_changes_without_a_number_are_counted() -> None:
    """An origin need not number its changes."""
    assert counted(counted(7, None), None, 3) == 11
    assert counted(counted(7, None), 20) == 20


def test_a_span_knows_its_size_and_rows_are_compared_by_named_columns() -> None:
    """Operations 913 to 950 are 38 (document 003)."""
    assert changes(NumberRange(913, 950)) == 38
    assert is_within({1: 5, 2: 9}, {1: 5})
    assert not is_within({1: 6}, {1: 5})
