"""Claims about the order of keys: by value, whatever the type."""

import pytest

from streaming.core.model.key_order import key_order
from streaming.core.model.table import ColumnType, Table


@pytest.mark.parametrize(
    ("kind", "ordered"),
    [
        (ColumnType.INT32, ["-10", "-9", "0", "2", "10"]),
        (ColumnType.INT64, ['"-10"', '"-9"', '"2"', '"10"', '"9007199254740993"']),
        (ColumnType.DECIMAL, ['"-1.5"', '"2"', '"2.5"', '"10"']),
        (ColumnType.FLOAT64, ['"-Infinity"', "-1.5", "2.0", "10.0", '"Infinity"', '"NaN"']),
        (ColumnType.BOOL, ["false", "true"]),
        (ColumnType.TEXT, ['""', '"10"', '"2"', '"a"', '"ä"']),
        (ColumnType.BYTES, ['""', '"AA=="', '"/w=="']),
        (
            ColumnType.TIMESTAMP,
            ['"0999-01-01T00:00:00.000000Z"', '"2026-01-01T00:00:00.000000Z"'],
        ),
    ],
)
def test_keys_of_each_type_are_in_the_order_of_their_values(
    kind: ColumnType, ordered: list[str]
) -> None:
    """Row 10 is behind row 9 for whoever reads a list."""
    table = Table("t", ("k",), {"k": kind})
    keys = [f'{{"k":{value}}}' for value in ordered]
    shuffled = keys[::-1]

    found = sorted(shuffled, key=lambda key: key_order(table, key))

    assert found == keys


def test_a_key_of_several_columns_is_in_their_order() -> None:
    """The first column decides, the second where the first is equal."""
    table = Table("t", ("a", "n"), {"n": ColumnType.INT64, "a": ColumnType.TEXT})
    keys = ['{"a":"x","n":"9"}', '{"a":"x","n":"10"}', '{"a":"y","n":"1"}']

    shuffled = keys[::-1]
    assert sorted(shuffled, key=lambda key: key_order(table, key)) == keys


def test_a_key_of_other_types_is_behind_the_rest() -> None:
    """A column may have had another type once, and its rows are still listed."""
    table = Table("t", ("k",), {"k": ColumnType.INT64})
    keys = ['{"k":"9"}', '{"k":"10"}', '{"k":"no number"}', '{"old":"1"}']

    shuffled = keys[::-1]
    assert sorted(shuffled, key=lambda key: key_order(table, key)) == keys
