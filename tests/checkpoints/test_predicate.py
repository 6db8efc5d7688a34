"""Claims about a condition on rows: what it finds, and what is no condition."""

import pytest

from checkpoints.reading.predicate import matching
from streaming.core.model.errors import QuestionError
from streaming.core.model.table import ColumnType, Table

TABLE = Table(
    "orders",
    ("id",),
    {
        "id": ColumnType.INT64,
        "state": ColumnType.TEXT,
        "since": ColumnType.TIMESTAMP,
        "key": ColumnType.TEXT,
    },
)
ROWS = [
    ("1", '{"id":"1","state":"new","since":"2026-01-01T00:00:00Z","key":"a"}'),
    ("2", '{"id":"2","state":null,"since":null,"key":"b"}'),
]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("id = 2", {"2"}),
        ("id + 1 BETWEEN 2 AND 3", {"1", "2"}),
        ("state LIKE 'n%' -- and nothing else", {"1"}),
        ("state IS NULL OR lower(state) = 'x'", {"2"}),
        ("orders.key IN ('b', 'c') AND NOT id = 1", {"2"}),
        ("since < TIMESTAMPTZ '2027-01-01' AND year(since) = 2026", {"1"}),
        ("CASE WHEN id > 5 THEN true END", set()),
    ],
)
def test_a_condition_finds_the_rows_for_which_it_holds(text: str, keys: set[str]) -> None:
    """By the columns of the table, in their types."""
    assert matching(TABLE, ROWS, text) == keys


@pytest.mark.parametrize(
    "text",
    [
        "id =",
        "id = 1) UNION SELECT (1",
        "true); DROP TABLE orders; SELECT (true",
        "id IN (SELECT 1)",
        "row_number() OVER () = 1",
        "count(*) > 1",
        "id = $1",
        "other = 1",
        "now() > since",
        "current_date > since",
        "age(since) > INTERVAL 1 DAY",
        "random() < 0.5",
        "getenv('HOME') = '/'",
        "id = 'x'",
    ],
)
def test_what_is_no_condition_on_a_row_is_refused(text: str) -> None:
    """A hub that repeats its batch must find the same rows; nothing but the row is read."""
    with pytest.raises(QuestionError, match="is no condition on a row"):
        matching(TABLE, ROWS, text)
