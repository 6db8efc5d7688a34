"""Row filters: what they refuse, and that they decide as a database does."""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.errors import ConfigError
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text, to_json
from streaming.filters.row_predicate import MANY, RowPredicate

COLUMNS = {
    "id": ColumnType.INT64,
    "n": ColumnType.INT32,
    "f": ColumnType.FLOAT64,
    "d": ColumnType.DECIMAL,
    "t": ColumnType.TEXT,
    "b": ColumnType.BOOL,
    "x": ColumnType.BYTES,
    "at": ColumnType.TIMESTAMP,
    'a "b': ColumnType.TEXT,
}
TABLE = Table("orders", ("id",), COLUMNS)


def image(**values: object) -> str:
    """A row's image with these columns."""
    return json_text({n: to_json(v, COLUMNS[n]) for n, v in values.items()})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("region = 'eu'", "'region' is no column of table orders: use one of id, n, f"),
        ("T = 'eu'", "'T' is no column"),
        ("t.t = 'eu'", "cannot be in a condition"),
        ("t = t", "t is of type text: write a text in quotes"),
        ("t = NULL", "use IS NULL"),
        ("t IN ('a', NULL)", "use IS NULL"),
        ("t = 1", "t is of type text"),
        ("t = -'a'", "t is of type text"),
        ("n = 1.5", "n is of type int32: write a whole number in place of 1.5"),
        ("n = '1'", "write a whole number in place of '1'"),
        ("id = 9223372036854775808", "id is of type int64"),
        ("f = 1e999", "f is of type float64"),
        ("at > '2024-01-01T00:00:00'", "a time with its zone"),
        ("at > 'yesterday'", "a time with its zone"),
        ("b", None),
        ("n", "n is of type int32: compare it with a value"),
        ("b < TRUE", "which has no order"),
        ("x >= X'00'", "which has no order"),
        ("x = 'AA=='", "write bytes as X'00ff'"),
        ("n LIKE 'a%'", "n is of type int32: LIKE looks at texts"),
        ("t LIKE t", "write a text in quotes"),
        ("t LIKE 'a%' ESCAPE '!'", "cannot be in a condition"),
        ("t ILIKE 'a%'", "cannot be in a condition"),
        ("t LIKE 'a\\'", "ends with a backslash"),
        ("lower(t) = 'a'", "is no column of table orders"),
        ("n + 1 = 2", "is no column of table orders"),
        ("n::text = '1'", "is no column of table orders"),
        ("1 = 1", "'1' is no column"),
        ("TRUE", "cannot be in a condition"),
        ("b IS TRUE", "only NULL may follow IS"),
        ("n IN (SELECT 1)", "cannot be in a condition"),
        ("n BETWEEN SYMMETRIC 2 AND 1", "cannot be in a condition"),
        ("n IN ()", "names no value"),
        ("n = $1", "write a whole number"),
        ("n = 1; n = 2", "is not one condition"),
        ("", "is not one condition"),
        ("n = ", "is no condition in SQL"),
        ("n = 1 x", "cannot be in a condition"),
        ("t = 'a", "is no condition in SQL"),
        ("n = 1 ORDER BY n", "is no condition in SQL"),
        ("SELECT 1", "cannot be in a condition"),
        ("CASE WHEN b THEN b END", "cannot be in a condition"),
        ("n < 1 < 2", "is no column"),
        ("NOT " * 3000 + "b", "allowed"),
        ("n = 1" + " OR n = 1" * 100, "nested too deeply"),
        ("(" * 4000 + "b" + ")" * 4000, "nested too deeply"),
    ],
)
def test_what_is_no_filter_is_refused_by_its_place(text: str, said: str | None) -> None:
    """A condition that is misunderstood shows rows to the wrong replica."""
    if said is None:
        RowPredicate(text, TABLE)
        return
    with pytest.raises(ConfigError) as caught:
        RowPredicate(text, TABLE)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "row", "shown"),
    [
        ("n = 1", {"n": 1}, True),
        ("2 > n", {"n": 1}, True),
        ("n = 1", {"n": None}, False),
        ("NOT n = 1", {"n": None}, False),
        ("n = 1", {}, False),
        ("n IS NULL", {}, True),
        ("n = 1 OR t = 'a'", {"n": None, "t": "a"}, True),
        ("n NOT IN (1, 2)", {"n": None}, False),
        ("n NOT IN (1, 2)", {"n": 3}, True),
        ("f > 1", {"f": math.nan}, True),
        ("f <= 1", {"f": math.nan}, False),
        ("f = 0", {"f": -0.0}, True),
        ("f IN (0, 1)", {"f": -0.0}, True),
        ("f < 0", {"f": -math.inf}, True),
        ("d = 1.5", {"d": Decimal("1.500")}, True),
        ("d IN (1.5)", {"d": Decimal("1.500")}, True),
        ("d > 0.1", {"d": Decimal("0.10000000000000000000000000000000000000000000000001")}, True),
        ("d > 1", {"d": Decimal("NaN")}, True),
        ("d > 1", {"d": Decimal("Infinity")}, True),
        ("d < -1e40", {"d": Decimal(-(10**50))}, True),
        ("id = -9223372036854775808", {"id": -(2**63)}, True),
        ("t > 'z'", {"t": "\u00e4"}, True),
        ("t < '\U0001f600'", {"t": "\uffff"}, True),
        ("t = 'a\u0000b'", {"t": "a\u0000b"}, True),
        ("t = 'it''s \\'", {"t": "it's \\"}, True),
        ("b", {"b": True}, True),
        ("NOT b", {"b": False}, True),
        ("b <> TRUE", {"b": None}, False),
        ("x = X'00ff'", {"x": b"\x00\xff"}, True),
        ("x IN (X'', X'01')", {"x": b""}, True),
        (
            "at < '2024-01-01T01:00:00+01:00'",
            {"at": datetime(2023, 12, 31, 23, 59, tzinfo=UTC)},
            True,
        ),
        ("at = '2024-01-01T00:00:00Z'", {"at": datetime(2024, 1, 1, tzinfo=UTC)}, True),
        ("at < 'infinity'", {"at": datetime(9999, 1, 1, tzinfo=UTC)}, True),
        ('"a ""b" = \'x\'', {'a "b': "x"}, True),
        ("n BETWEEN 1 AND 2 AND NOT (t = 'a' OR t = 'b')", {"n": 2, "t": "c"}, True),
        ("n NOT BETWEEN 1 AND 2", {"n": 3}, True),
        ("t LIKE 'a_c%'", {"t": "a\U0001f600c\n"}, True),
        ("t LIKE 'a.c'", {"t": "abc"}, False),
        ("t NOT LIKE 'a%'", {"t": None}, False),
        (r"t LIKE 'a\%%'", {"t": "a%b"}, True),
        (r"t LIKE 'a\%%'", {"t": "ab"}, False),
    ],
)
def test_values_are_compared_as_their_types_mean(
    text: str, row: dict[str, object], *, shown: bool
) -> None:
    """A text of digits is no number, and a null is neither equal nor different."""
    predicate = RowPredicate(text, TABLE)

    assert predicate.shown([image(**row)]) == [shown]
    assert predicate.shown([image(**row), None] * MANY) == [shown, False] * MANY


TEXTS = st.text(max_size=4) | st.sampled_from(["a", "NaN", "1", '"', "\\", "\n", "\x00", "\u2028"])
OF_TYPES: dict[str, st.SearchStrategy[object]] = {
    "id": st.integers(-(2**63), 2**63 - 1) | st.sampled_from([1, 2]),
    "n": st.integers(-2, 2),
    "f": st.floats(),
    "t": TEXTS,
    "b": st.booleans(),
    "x": st.sampled_from([b"", b"\x00"]),
    'a "b': TEXTS,
}
GOOD_ROWS = st.fixed_dictionaries({}, optional=OF_TYPES).map(lambda one: image(**one))
IMAGES_OF_ANY = st.dictionaries(
    st.sampled_from([*COLUMNS, "other"]),
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | TEXTS | st.lists(TEXTS, max_size=1),
    max_size=4,
).map(json_text)
"""Values of any type in any column, as no agent of ours sends them."""


@given(
    st.lists(st.none() | GOOD_ROWS | IMAGES_OF_ANY, min_size=1, max_size=30),
    st.sampled_from(
        ["n = 1 OR t LIKE 'a%'", "f > 0.5 OR b", "id IN (1, 2)", "t IS NULL AND NOT x = X'00'"]
    ),
)
def test_many_images_are_decided_as_few_are(images: list[str | None], text: str) -> None:
    """Whatever Arrow reads otherwise, or not at all, is read as ever."""
    predicate = RowPredicate(text, TABLE)
    try:
        expected = predicate.shown(images)
    except Exception as error:  # noqa: BLE001 - the same one is expected
        with pytest.raises(type(error)):
            predicate.shown(images * MANY)
        return

    assert predicate.shown(images * MANY) == expected * MANY


def test_a_time_far_away_is_compared_by_its_value() -> None:
    """PostgreSQL has times that no datetime holds."""
    before = RowPredicate("at < '0001-01-01T00:00:00Z'", TABLE)

    far = ["-infinity", "-0044-03-15T00:00:00.000000Z", "+10000-01-01T00:00:00.000000Z"]
    assert before.shown([json_text({"at": one}) for one in far]) == [True, True, False]


def test_an_image_that_lacks_a_column_of_the_condition_is_not_surely_hidden() -> None:
    """A replica need not send the columns that it did not change."""
    predicate = RowPredicate("n = 1 AND t = 'a'", TABLE)
    images = ['{"n":2}', '{"n":2,"t":"a"}', '{"n":1,"t":"a"}', None, '{"n":2,"x":"t"}']
    hostile = [json_text({"n": 2, 'a "b': '"t":'})]

    assert predicate.surely_hidden(images) == [False, True, False, False, False]
    assert predicate.surely_hidden(hostile) == [False]
    assert predicate.shown(images) == [False, False, True, False, False]


NUMBERS = st.sampled_from([-(2**63), -3, -1, 0, 1, 2, 2**31, 2**63 - 1])
TEXTS = st.text(st.sampled_from("aAbz'\"\\ \u00e4\uffff\U0001f600%_"), max_size=3)
FLOATS = st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.5, 1e300, math.inf, -math.inf])
ROWS = st.fixed_dictionaries(
    {"id": NUMBERS, "f": st.none() | FLOATS, "t": st.none() | TEXTS, "b": st.none() | st.booleans()}
)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> str:
    """The text of a condition on id, f, t and b that SQLite means the same by."""
    sign = draw(st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]))
    kind = draw(st.integers(0, 9 if depth else 6))
    column, value = draw(st.sampled_from([*VALUES.items()]))
    one, other = draw(value), draw(value)
    inner = conditions(depth - 1)
    match kind:
        case 0:
            return f"{column} {sign} {one}"
        case 1:
            return f"{one} {sign} {column}"
        case 2:
            return f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
        case 3:
            return f"{column} {draw(st.sampled_from(['', 'NOT ']))}IN ({one}, ({other}))"
        case 4:
            return f"{column} {draw(st.sampled_from(['', 'NOT ']))}BETWEEN {one} AND {other}"
        case 5:
            return draw(st.sampled_from(["b", "b = TRUE", "b <> FALSE", "b IN (FALSE)"]))
        case 6:
            return f"t {draw(st.sampled_from(['', 'NOT ']))}LIKE {draw(PATTERNS)}"
        case 7:
            return f"NOT ({draw(inner)})"
        case 8:
            return f"{draw(inner)} AND {draw(inner)}"
        case _:
            return f"({draw(inner)} OR {draw(inner)})"


PATTERNS = st.text(st.sampled_from("aAb%_.*\u00e4\U0001f600"), max_size=4).map(repr)
VALUES: dict[str, st.SearchStrategy[str]] = {
    "id": NUMBERS.map(str),
    "f": FLOATS.filter(math.isfinite).map(repr),
    '"t"': TEXTS.map(lambda text: "'" + text.replace("'", "''") + "'"),
}


def by_sqlite(text: str, rows: list[dict[str, Any]]) -> Iterator[bool]:
    """What SQLite says of each row."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("PRAGMA case_sensitive_like = ON")
        database.execute("CREATE TABLE orders (id INTEGER, f REAL, t TEXT, b BOOLEAN)")
        for row in rows:
            database.execute("DELETE FROM orders")
            database.execute("INSERT INTO orders VALUES (:id, :f, :t, :b)", row)
            (count,) = database.execute(f"SELECT count(*) FROM orders WHERE {text}").fetchone()
            yield bool(count)


@given(conditions(), st.lists(ROWS, min_size=1, max_size=5))
def test_the_hub_shows_what_a_database_selects(text: str, rows: list[dict[str, Any]]) -> None:
    """Whoever writes a filter tries it in his database first; one row and many are the same."""
    predicate = RowPredicate(text, TABLE)
    images = [image(**row) for row in rows]

    shown = predicate.shown(images)

    assert shown == list(by_sqlite(text, rows))
    assert [predicate.shown([one]) for one in images] == [[one] for one in shown]
