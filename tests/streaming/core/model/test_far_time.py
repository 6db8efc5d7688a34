"""A time that no datetime has: one text each, ordered as PostgreSQL orders times."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.far_time import FarTime, far_time
from streaming.core.model.table import ColumnType
from streaming.core.model.values import canonical_text, comparable, from_json, to_json
from tests.harness.far_times import FAR, FAR_TIMES, in_year

YEAR_ENDS = [
    datetime(year, month, day, tzinfo=UTC)
    for year in (1, 9999)
    for month, day in ((1, 1), (12, 31))
]


@given(FAR_TIMES)
def test_its_text_is_canonical_and_comes_back(time: FarTime) -> None:
    """Rows are found by the text of their keys."""
    text = str(time)

    assert from_json(text, ColumnType.TIMESTAMP) == time
    assert to_json(time, ColumnType.TIMESTAMP) == text
    assert canonical_text(text, ColumnType.TIMESTAMP) == f'"{text}"'


@pytest.mark.parametrize(
    "text",
    [
        *("+infinity", "Infinity", "-Infinity", "infinity ", "", "\u0661"),
        *("-0000-01-01T00:00:00.000000Z", "+0000-01-01T00:00:00.000000Z"),
        *("2024-01-01T00:00:00.000000Z", "+2024-01-01T00:00:00.000000Z"),
        *("10000-01-01T00:00:00.000000Z", "+010000-01-01T00:00:00.000000Z"),
        *("-43-01-01T00:00:00.000000Z", "-00043-01-01T00:00:00.000000Z"),
        *("+1000000-01-01T00:00:00.000000Z", "-1000000-01-01T00:00:00.000000Z"),
        *("+10001-02-29T00:00:00.000000Z", "-0100-02-29T00:00:00.000000Z"),
        *("+10000-01-01T24:00:00.000000Z", "+10000-01-01T00:00:60.000000Z"),
        *(
            "+10000-01-01T00:00:00Z",
            "+10000-01-01T00:00:00.000000",
            "+10000-01-01 00:00:00.000000Z",
        ),
        *("0044-03-15 00:00:00+00 BC", "+1000\u0660-01-01T00:00:00.000000Z"),
    ],
)
def test_no_other_text_is_one(text: str) -> None:
    """Two texts of one time would be two rows."""
    assert far_time(text) is None


@given(st.integers(-999_999, 999_999), st.datetimes(datetime(2000, 1, 1), datetime(2399, 1, 1)))  # noqa: DTZ001
def test_exactly_the_leap_days_of_the_gregorian_calendar_are_times(
    year: int, time: datetime
) -> None:
    """PostgreSQL counts leap years in the same way before 1582."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    text = in_year(year, time.replace(year=2000, month=2, day=29))

    assert (canonical_text(text, ColumnType.TIMESTAMP) is not None) is is_leap


def test_they_are_ordered_around_all_datetimes() -> None:
    """-infinity is before every time, infinity behind."""
    before = [FarTime(text) for text in FAR if text.startswith(("-", "0"))]
    ordered: list[Any] = [*before, *YEAR_ENDS, *(FarTime(text) for text in FAR[len(before) :])]

    assert all(one < other and not one > other for one, other in pairwise(ordered))
    assert all(one > other for other, one in pairwise(ordered))
    assert [*map(comparable, ordered)] == sorted(map(comparable, reversed(ordered)))


@given(FAR_TIMES, FAR_TIMES)
def test_two_are_ordered_by_year_and_then_by_text(one: FarTime, other: FarTime) -> None:
    """As numbers the years, because their texts have several lengths."""
    assert (one < other) is (_by_hand(one) < _by_hand(other))
    assert (one == other) is (str(one) == str(other))


def _by_hand(time: FarTime) -> tuple[float, str]:
    if str(time).endswith("infinity"):
        return float(str(time)), ""
    sign, year, rest = -1 if str(time)[0] == "-" else 1, *str(time).lstrip("+-").split("-", 1)
    return sign * int(year), rest
