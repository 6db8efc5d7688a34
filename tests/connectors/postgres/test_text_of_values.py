"""A value's text in PostgreSQL and its JSON on the wire are two spellings of one value."""

import json
import math
from datetime import UTC, datetime
from decimal import Decimal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.postgres.values.columns import ServerColumn
from connectors.postgres.values.image import image
from connectors.postgres.values.text import server_text, wire_text
from connectors.postgres.values.times import text_of_time, time_of_text
from connectors.postgres.values.types import (
    ServerType,
    TypeForm,
    key_refusal_of,
    kinds_of,
    refusal_of,
)
from streaming.core.model.errors import WireError
from streaming.core.model.table import ColumnType
from streaming.core.model.values import to_json

STORED_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
FINE_TIME = "2024-02-29T23:59:59.000001Z"
VALUES = st.one_of(
    st.tuples(st.just(ColumnType.BOOL), st.booleans()),
    st.tuples(st.just(ColumnType.INT32), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just(ColumnType.INT64), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(ColumnType.FLOAT64), st.floats()),
    st.tuples(st.just(ColumnType.DECIMAL), st.decimals(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just(ColumnType.TEXT), STORED_TEXTS),
    st.tuples(st.just(ColumnType.BYTES), st.binary()),
    st.tuples(st.just(ColumnType.TIMESTAMP), st.datetimes(timezones=st.just(UTC))),
)


@given(VALUES)
def test_a_value_of_the_wire_comes_back_as_it_was(
    value: tuple[ColumnType, bool | int | float | Decimal | str | bytes | datetime],
) -> None:
    """Another text would be another value, and in a key another row."""
    kind, typed = value
    on_wire = json.dumps(to_json(typed, kind), ensure_ascii=False)

    text = server_text(orjson.loads(on_wire), kind)

    assert text is not None
    again = wire_text(text, kind)
    assert again is not None
    assert (json.loads(again), type(json.loads(again))) == (
        json.loads(on_wire),
        type(json.loads(on_wire)),
    ) or math.isnan(float(text))


@pytest.mark.parametrize(
    ("text", "kind", "on_wire"),
    [
        ("-0", ColumnType.FLOAT64, "-0.0"),
        ("1", ColumnType.FLOAT64, "1.0"),
        ("1e+308", ColumnType.FLOAT64, "1e+308"),
        ("NaN", ColumnType.FLOAT64, '"NaN"'),
        ("1.000", ColumnType.DECIMAL, '"1.000"'),
        ("\\x00ff5c", ColumnType.BYTES, '"AP9c"'),
        ("\\x", ColumnType.BYTES, '""'),
        ("t", ColumnType.BOOL, "true"),
        ("f", ColumnType.BOOL, "false"),
        ("2024-02-29 23:59:59.5+00", ColumnType.TIMESTAMP, '"2024-02-29T23:59:59.500000Z"'),
        ("2024-02-29 23:59:59", ColumnType.TIMESTAMP, '"2024-02-29T23:59:59.000000Z"'),
        ("Zoë\n", ColumnType.TEXT, '"Zoë\\n"'),
        ("", ColumnType.TEXT, '""'),
        (None, ColumnType.TEXT, "null"),
    ],
)
def test_the_wire_has_one_form_of_each_value(
    text: str | None, kind: ColumnType, on_wire: str
) -> None:
    """An agent of another database writes the same."""
    assert wire_text(text, kind) == on_wire


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(("yes", ColumnType.BOOL), ("2147483648", ColumnType.INT32), ("1.5", ColumnType.INT64)),
        *(("one", ColumnType.FLOAT64), ("1e400", ColumnType.FLOAT64), ("1e3", ColumnType.DECIMAL)),
        *(("00", ColumnType.BYTES), ("2024-02-30 00:00:00+00", ColumnType.TIMESTAMP)),
        *(("2024-02-29", ColumnType.TIMESTAMP), ("24:00:00", ColumnType.TIMESTAMP)),
    ],
)
def test_what_is_no_value_of_the_type_is_a_fault(text: str, kind: ColumnType) -> None:
    """The hub quarantines the change with what was written, and the agent says what to do."""
    found = image({"id": ColumnType.INT64, "v": kind}, {"id": "1", "v": text})

    assert found.text == f'{{"id":"1","v":{{"text":"{text}"}}}}'
    assert found.known == '{"id":"1"}'
    assert len(found.faults) == 1
    assert found.faults[0].startswith(f"v: {text!r} cannot be carried as {kind}")


def test_an_absent_column_is_absent_and_a_null_is_null() -> None:
    """Absent is unknown: the row keeps what it has there."""
    columns = {"a": ColumnType.TEXT, "b": ColumnType.TEXT, "c": ColumnType.INT32}

    assert image(columns, {"c": "1", "a": None}).text == '{"a":null,"c":1}'


@pytest.mark.parametrize(
    ("server", "on_wire"),
    [
        ("infinity", "infinity"),
        ("-infinity", "-infinity"),
        ("294276-12-31 23:59:59.999999+00", "+294276-12-31T23:59:59.999999Z"),
        ("0044-03-15 12:00:00.000000+00 BC", "-0043-03-15T12:00:00.000000Z"),
        ("0001-12-31 23:59:59.000001+00 BC", "0000-12-31T23:59:59.000001Z"),
        ("4714-11-24 00:00:00.000000+00 BC", "-4713-11-24T00:00:00.000000Z"),
        ("0001-01-01 00:00:00.000000+00", "0001-01-01T00:00:00.000000Z"),
    ],
)
def test_a_time_far_away_has_the_astronomical_year(server: str, on_wire: str) -> None:
    """1 BC is the year 0, as in ISO 8601; PostgreSQL has no year 0."""
    assert time_of_text(server) == on_wire
    assert text_of_time(on_wire) == server


def test_a_text_with_a_zero_character_is_refused() -> None:
    """PostgreSQL has none; left out, the text would be another one."""
    with pytest.raises(WireError, match="U\\+0000"):
        server_text("a\0b", ColumnType.TEXT)


@pytest.mark.parametrize(
    ("type_", "kind", "value", "is_key"),
    [
        (ServerType("numeric", modifier=(12 << 16) + 2 + 4), ColumnType.DECIMAL, "1.005", False),
        (ServerType("numeric", modifier=(12 << 16) + 2 + 4), ColumnType.DECIMAL, "1.5", True),
        (ServerType("float4"), ColumnType.FLOAT64, 0.123456789012, False),
        (ServerType("bpchar", modifier=9), ColumnType.TEXT, "ab", False),
        (ServerType("timestamptz", modifier=3), ColumnType.TIMESTAMP, FINE_TIME, False),
    ],
)
def test_what_a_column_would_change_is_refused(
    type_: ServerType, kind: ColumnType, value: object, *, is_key: bool
) -> None:
    """PostgreSQL rounds and pads without a word; the row would differ from the hub's."""
    with pytest.raises(WireError, match="would hold"):
        ServerColumn("c", type_, "x").from_wire(value, kind, is_key=is_key)


@pytest.mark.parametrize(
    ("type_", "kind", "value", "text"),
    [
        (ServerType("numeric", modifier=(12 << 16) + 2 + 4), ColumnType.DECIMAL, "1.5", "1.5"),
        (ServerType("numeric", modifier=(3 << 16) + 2046 + 4), ColumnType.DECIMAL, "1200", "1200"),
        (ServerType("numeric"), ColumnType.DECIMAL, "1.50000", "1.50000"),
        (ServerType("float4"), ColumnType.FLOAT64, 0.1, "0.1"),
        (ServerType("float4"), ColumnType.FLOAT64, "NaN", "NaN"),
        (ServerType("float4"), ColumnType.FLOAT64, -0.0, "-0.0"),
        (ServerType("bpchar", modifier=9), ColumnType.TEXT, "ab   ", "ab   "),
    ],
)
def test_what_a_column_holds_is_written(
    type_: ServerType, kind: ColumnType, value: object, text: str
) -> None:
    """Zeros behind a decimal are no other value."""
    assert ServerColumn("c", type_, "x").from_wire(value, kind, is_key=False) == text


@pytest.mark.parametrize(
    ("type_", "why"),
    [
        (ServerType("money"), "lc_monetary"),
        (ServerType("regclass"), "a name"),
        (ServerType("_money", TypeForm.ARRAY, (ServerType("money"),)), "of which _money is made"),
        (ServerType("citext", is_built_in=False), "not known"),
        (ServerType("record", TypeForm.PSEUDO), "no values"),
        (ServerType("dom", TypeForm.DOMAIN, (ServerType("regproc"),), is_built_in=False), "a name"),
    ],
)
def test_a_type_whose_text_may_change_is_refused(type_: ServerType, why: str) -> None:
    """The log is read again after a crash, and must give the same text."""
    assert why in (refusal_of(type_) or "")
    assert kinds_of(type_) == ()


def test_each_type_has_a_type_of_the_wire_by_default() -> None:
    """A column that nobody configured otherwise gets it; text carries each."""
    domain = ServerType("posint", TypeForm.DOMAIN, (ServerType("int4"),), is_built_in=False)

    assert kinds_of(domain)[0] is ColumnType.INT32
    assert kinds_of(ServerType("timestamp")) == (ColumnType.TEXT, ColumnType.TIMESTAMP)
    assert kinds_of(ServerType("timestamptz")) == (ColumnType.TIMESTAMP, ColumnType.TEXT)
    assert kinds_of(ServerType("mood", TypeForm.ENUM, is_built_in=False)) == (ColumnType.TEXT,)
    own_int4 = ServerType("int4", TypeForm.ENUM, is_built_in=False)
    assert kinds_of(own_int4) == (ColumnType.TEXT,)


@pytest.mark.parametrize(
    ("type_", "is_allowed"),
    [
        *((ServerType(name), True) for name in ("int2", "int8", "text", "uuid", "bytea", "bool")),
        *((ServerType(name), False) for name in ("numeric", "float8", "bpchar", "jsonb", "inet")),
        *((ServerType(name), False) for name in ("interval", "timetz", "_int4", "timestamp")),
        (ServerType("numeric", modifier=(12 << 16) + 2 + 4), True),
        (ServerType("text", collates_alike=False), False),
        (ServerType("mood", TypeForm.ENUM, is_built_in=False), True),
        (ServerType("text", TypeForm.BASE, is_built_in=False), False),
    ],
)
def test_a_key_has_one_text_for_equal_values(type_: ServerType, *, is_allowed: bool) -> None:
    """Two texts of one row would be two rows at the hub."""
    assert (key_refusal_of(type_) is None) is is_allowed
