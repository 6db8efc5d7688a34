"""A row without the columns that are not sent, whatever its values and names look like."""

import base64
import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.errors import ConfigError
from streaming.core.model.mask import ConstantMask, HashMask
from streaming.core.model.table import ColumnType
from streaming.core.model.values import json_text
from tests.harness.examples import examples

HOSTILE = st.text(alphabet='",:{}\\ax1\n\u2028', max_size=6)
NAMES = HOSTILE.filter(bool)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = HOSTILE | st.none() | st.booleans() | NUMBERS


@examples(300)
@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=6), st.data())
def test_a_row_keeps_what_is_sent_as_it_was_written(
    row: dict[str, object], data: st.DataObject
) -> None:
    """A value that looks like another member must neither hide nor show one."""
    sent = data.draw(st.sets(st.sampled_from([*row])))

    shown = ColumnFilter(frozenset(sent)).shown(json_text(row))

    assert shown == json_text({name: value for name, value in row.items() if name in sent})
    assert json.loads(shown).keys() == sent


def test_no_row_has_no_columns() -> None:
    """A delete stays a delete."""
    assert ColumnFilter(frozenset("k")).all_shown([None, '{"k":1,"s":2}']) == [None, '{"k":1}']


KEY = "a key that is long enough"
HASHED = HashMask(ColumnType.TEXT, KEY)


@given(HOSTILE, HOSTILE)
def test_a_hash_is_that_of_the_value_and_the_key(one: str, other: str) -> None:
    """Equal values have equal hashes, so masked rows can be joined; others have others."""
    known = ColumnFilter(frozenset("ks"), {"s": HASHED})

    first, second = (
        json.loads(known.shown(json_text({"k": 1, "s": value})) or "") for value in (one, other)
    )

    assert first == {"k": 1, "s": hmac.new(KEY.encode(), one.encode(), hashlib.sha256).hexdigest()}
    assert (first == second) == (one == other)


def test_bytes_are_hashed_to_bytes() -> None:
    """The column keeps its type."""
    plain = base64.b64encode(b"\x00\xff").decode()
    digest = hmac.new(KEY.encode(), b"\x00\xff", hashlib.sha256).digest()

    sent = HashMask(ColumnType.BYTES, KEY).of(json_text(plain))

    assert base64.b64decode(json.loads(sent)) == digest


def test_what_is_masked_is_no_value_of_the_row() -> None:
    """A null stays null under a hash: whether there is a value is not hidden."""
    known = ColumnFilter(
        frozenset("kabc"), {"a": ConstantMask("null"), "b": ConstantMask('"x"'), "c": HASHED}
    )

    assert known.shown('{"k":1,"a":"1","b":null,"c":null}') == '{"k":1,"a":null,"b":"x","c":null}'


@pytest.mark.parametrize(("key", "says"), [(None, "it is not set"), ("short", "5 characters, 16")])
def test_nothing_is_sent_without_a_key(key: str | None, says: str) -> None:
    """A hash without a secret is told from the value by trying."""
    with pytest.raises(ConfigError, match=says):
        HashMask(ColumnType.TEXT, key).of('"x"')


def test_a_key_is_never_shown() -> None:
    """Not even where a value is printed by mistake, and no two masks differ by it."""
    assert KEY not in repr(ColumnFilter(frozenset("k"), {"k": HASHED}))
    assert HashMask(ColumnType.TEXT, "another") == HASHED
