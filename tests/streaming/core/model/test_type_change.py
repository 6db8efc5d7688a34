"""Which types a column may take over: by the values of the wire themselves."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.errors import WireError
from streaming.core.model.table import ColumnType, keeps_values
from streaming.core.model.values import Value, from_json, to_json

T = ColumnType
VALUES: dict[ColumnType, st.SearchStrategy[Value]] = {
    T.BOOL: st.booleans(),
    T.INT32: st.integers(-(2**31), 2**31 - 1),
    T.INT64: st.integers(-(2**63), 2**63 - 1),
    T.FLOAT64: st.floats(allow_nan=False),
    T.DECIMAL: st.decimals(allow_nan=False, allow_infinity=False, places=2),
}
KEPT = [(old, new) for old in VALUES for new in ColumnType if keeps_values(old, new)]


@pytest.mark.parametrize(("old", "new"), KEPT)
@given(data=st.data())
def test_a_type_that_is_taken_over_keeps_every_value(
    old: ColumnType, new: ColumnType, data: st.DataObject
) -> None:
    """The state is not rewritten: what stands in it must be read as the same value."""
    value = data.draw(VALUES[old])

    assert from_json(to_json(value, old), new) == value


@pytest.mark.parametrize(
    ("value", "old", "new"),
    [
        (5, T.INT32, T.INT64),
        (5, T.INT64, T.INT32),
        (Decimal("1.5"), T.DECIMAL, T.INT64),
        (Decimal("1.5"), T.DECIMAL, T.FLOAT64),
        (1.5, T.FLOAT64, T.DECIMAL),
        (True, T.BOOL, T.INT32),
    ],
)
def test_a_value_that_is_written_otherwise_is_not_kept(
    value: Value, old: ColumnType, new: ColumnType
) -> None:
    """Also a wider type: an int64 is a string on the wire, an int32 is a number."""
    assert not keeps_values(old, new)
    with pytest.raises(WireError):
        from_json(to_json(value, old), new)


@pytest.mark.parametrize("old", [T.INT64, T.DECIMAL, T.TIMESTAMP, T.BYTES])
def test_what_a_text_column_would_take_is_not_kept(old: ColumnType) -> None:
    """Bytes would become their base64, and databases spell numbers and times in several ways."""
    assert not keeps_values(old, T.TEXT)
