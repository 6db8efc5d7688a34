"""Claims about JSON that somebody else wrote."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.foreign_json import MAX_DEPTH, is_too_deep, loads

_LEAVES = st.none() | st.booleans() | st.integers() | st.text(alphabet='[]{}"\\a\n,:')
_VALUES = st.recursive(
    _LEAVES, lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=2), one)
)


def _depth(value: object) -> int:
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inner), default=0)


@given(_VALUES, st.integers(0, MAX_DEPTH + 1))
def test_a_text_is_too_deep_if_its_value_is(value: object, more: int) -> None:
    """Brackets in a text open nothing, whatever stands before them."""
    text = "[" * more + json.dumps(value) + "]" * more

    assert is_too_deep(text) == (more + _depth(value) > MAX_DEPTH)


@pytest.mark.parametrize(
    "value",
    [
        b"[" * 500_000,
        b'{"a":' * 500_000,
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
        b'"\\' * 500_000 + b"[" * 200,
        b"9" * 5_000,
        b"\xff\xfe",
        b"",
    ],
)
def test_what_is_no_json_within_bounds_is_an_error_that_can_be_caught(value: bytes) -> None:
    """A RecursionError would end who reads it."""
    with pytest.raises(ValueError, match=r".+"):
        loads(value)


def test_what_stands_side_by_side_is_not_deep() -> None:
    """A row may have many members."""
    assert len(loads("[" + ",".join(["[]"] * 1_000) + "]")) == 1_000
