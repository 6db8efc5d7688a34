"""Equal values have one text, whatever a database makes of their spelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.compare.row_text import quick_text, row_text, value_text
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text
from tests.harness.examples import examples


@pytest.mark.parametrize(
    ("kind", "same"),
    [
        (ColumnType.DECIMAL, ["1.5", "1.50", "1.500"]),
        (ColumnType.DECIMAL, ["0", "-0", "0.00", "-0.0"]),
        (ColumnType.DECIMAL, ["100", "100.0"]),
        (ColumnType.FLOAT64, [0.0, -0.0, 0]),
        (ColumnType.FLOAT64, [1e15, 10**15]),
        (ColumnType.FLOAT64, ["NaN", float("nan")]),
    ],
)
def test_equal_values_have_one_text(kind: ColumnType, same: list[object]) -> None:
    """A numeric(12,2) has 1.50 of 1.5, and a column of floats no negative zero."""
    assert len({value_text(value, kind, is_key=False) for value in same}) == 1


@pytest.mark.parametrize(
    ("kind", "different"),
    [
        (ColumnType.DECIMAL, ["1.5", "15", "-1.5", "100", "1", "NaN", "Infinity", "-Infinity"]),
        (ColumnType.FLOAT64, [1.5, -1.5, 0.1, 0.1 + 2**-56, "NaN", "Infinity", "-Infinity"]),
        (ColumnType.TEXT, ["", "null", None, '"', "\\", "1.50", "1.5", {"text": "1.5"}]),
    ],
)
def test_different_values_have_different_texts(kind: ColumnType, different: list[object]) -> None:
    """Otherwise two rows that differ would have one hash."""
    assert len({value_text(value, kind, is_key=False) for value in different}) == len(different)


def test_a_key_is_compared_by_its_text() -> None:
    """1.5 and 1.50 are two rows."""
    texts = {value_text(text, ColumnType.DECIMAL, is_key=True) for text in ("1.5", "1.50")}

    assert len(texts) == 2


@examples()
@given(
    st.lists(st.sampled_from(["1.50", "1.5", "-0", "-0.00", "0.0", "10", "100.00", "NaN", None])),
    st.text(st.sampled_from('"d":1.0\\,{}')),
)
def test_the_quick_text_is_that_of_the_parsed_image(values: list[str | None], text: str) -> None:
    """Nothing that a text says is taken for a decimal, whatever it looks like."""
    names = [f"d{place}" for place in range(len(values))]
    columns = dict.fromkeys(names, ColumnType.DECIMAL) | {"t": ColumnType.TEXT}
    table = Table("t", ("k",), {"k": ColumnType.DECIMAL} | columns)
    image = {"k": "1.50"} | dict(zip(names, values, strict=True)) | {"t": text}

    quick = quick_text(table)(json_text(image).encode())

    assert quick in (None, row_text(table)(image).encode())
    assert quick is not None or any(str(value).startswith("-0") for value in values)
