"""Rows that are sorted already are not sorted again, and all others are."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.commit.recorded import sorted_by

NUMBERS = st.one_of(st.none(), st.integers(-2, 2), st.integers(-(2**63), 2**63 - 1))
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=6)


def table_of(rows: list[tuple[int | None, int | None]]) -> pa.Table:
    """Two columns of whole numbers, and one that tells the rows apart."""
    first, second = [[row[n] for row in rows] for n in (0, 1)]
    columns = {"batch": pa.array(first, pa.int64()), "place": pa.array(second, pa.int64())}
    return pa.table({**columns, "row": list(range(len(rows)))})


@given(ROWS)
def test_rows_come_out_as_arrow_sorts_them(rows: list[tuple[int | None, int | None]]) -> None:
    """A row in a wrong place would be judged in another batch."""
    table = table_of(rows)

    found = sorted_by(table, "batch", "place")

    order = [("batch", "ascending"), ("place", "ascending")]
    places = found.select(["batch", "place"])
    assert places.to_pylist() == table.sort_by(order).select(["batch", "place"]).to_pylist()
    assert sorted(found["row"].to_pylist()) == table["row"].to_pylist()


def test_sorted_rows_are_left_as_they_are() -> None:
    """It is what a hub writes, so it is what replay mostly finds."""
    table = table_of([(1, 0), (1, 1), (1, 1), (2, 0)])

    assert sorted_by(table, "batch", "place") is table
