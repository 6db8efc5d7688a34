"""The order of keys by their values, for people: 9 is before 10, whatever their texts are."""

import json
import math
from typing import Any

from streaming.core.model.errors import WireError
from streaming.core.model.table import Table
from streaming.core.model.values import from_json


def key_order(table: Table, key: str) -> tuple[Any, ...]:
    """By what to sort a key in canonical text: the values of its columns, in their order.

    A key that is not of the configured types, because these were others once, is behind the rest,
    by its text.
    """
    try:
        fields = json.loads(key)
        values = [from_json(fields[column], table.columns[column]) for column in table.key]
    except (KeyError, TypeError, ValueError, WireError):
        return (True, key)
    return (False, *((_is_last(value), value) for value in values))


def _is_last(value: object) -> bool:
    """Return whether a value compares with no other one: NaN and null stand behind them."""
    return value is None or (isinstance(value, float) and math.isnan(value))
