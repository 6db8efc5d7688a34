"""Claims about JSON that somebody else wrote."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors import wire
from streaming.core.model.foreign_json import MAX_BYTES, MAX_DEPTH, is_too_deep, loads
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.records.check import check
from streaming.core.records.record import Hello, Reason
from tests.streaming.core.intake.speaker import RULES

HELLO = Hello(0, 0, 1, NOTHING_KNOWN, None, lost=False)

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
        b"NaN",
        b'{"a":-Infinity}',
        b" " * (MAX_BYTES + 1),
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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9" * 5_000, "9" * 5_000),
        ("-1e999", "-1e999"),
        ("1" + "0" * 300, 10**300),
        ('{"\\ud800":["\\uDFFF","\\ud83d\\ude00"]}', {"?": ["?", "\U0001f600"]}),
        ('"\\\\ud800"', "\\ud800"),
        ('"\ud800"', "?"),
    ],
)
def test_what_no_field_may_have_is_read_as_text_that_can_be_stored(
    text: str, value: object
) -> None:
    """It may stand in a member that nobody knows, of a record that was taken."""
    assert loads(text) == value


@pytest.mark.parametrize(
    "member", ["[" * 99 + "]" * 99, "9" * 5_000, "1e999", '"\\ud800"', '{"":[{}]}']
)
def test_whatever_the_check_takes_can_be_read_again(member: str) -> None:
    """The hub and every command read the hello of a replica at each start."""
    hello = wire.encode("s", HELLO)[:-1] + f',"unknown":{member}}}'.encode()

    assert check(hello, 1, RULES.tables).reason is None
    assert loads(hello)["kind"] == "hello"


def test_a_record_is_as_deep_as_it_can_be_read_again() -> None:
    """The other side of that bound."""
    hello = wire.encode("s", HELLO)[:-1] + b',"unknown":' + b"[" * 100 + b"]" * 100 + b"}"

    assert check(hello, 1, RULES.tables).reason is Reason.JSON
