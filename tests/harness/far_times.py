"""Times that no datetime has."""

from datetime import datetime

from hypothesis import strategies as st

from streaming.core.model.far_time import FarTime

FAR = (
    "-infinity",
    "-999999-01-01T00:00:00.000000Z",
    "-10000-12-31T23:59:59.999999Z",
    "-9999-01-01T00:00:00.000000Z",
    "-4712-02-29T00:00:00.000000Z",
    "-0043-03-15T12:00:00.000000Z",
    "-0043-03-15T12:00:00.000001Z",
    "-0001-01-01T00:00:00.000000Z",
    "0000-02-29T23:59:59.999999Z",
    "+10000-01-01T00:00:00.000000Z",
    "+99999-12-31T23:59:59.999999Z",
    "+100000-01-01T00:00:00.000000Z",
    "+294276-12-31T23:59:59.999999Z",
    "infinity",
)
"""Canonical texts in order; the first BEFORE are before year 1."""
BEFORE = 9


def in_year(year: int, time: datetime) -> str:
    """A time of a year of the same leap days, in the canonical text of another year."""
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}{time.isoformat(timespec='microseconds')[4:]}Z"


def _far(place: tuple[int, datetime]) -> FarTime:
    """A time as many times 400 years away as no datetime is."""
    cycles, time = place
    return FarTime(in_year(time.year + 400 * cycles, time))


FAR_TIMES: st.SearchStrategy[FarTime] = st.one_of(
    st.sampled_from(FAR).map(FarTime),
    st.tuples(
        st.integers(-2500, -6) | st.integers(20, 2490),
        st.datetimes(datetime(2000, 1, 1), datetime(2399, 12, 31)),  # noqa: DTZ001
    ).map(_far),
)
"""Every year of six digits."""
