"""Claims about the hours at which an agreement sends."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.state.sending_times import SendingHours, SendingTimes, parse_hours
from tests.harness.examples import examples

NIGHTS = parse_hours("22:00-06:00 Europe/Paris")
DAYS = parse_hours("08:30-17:00 America/New_York")


def at_ms(text: str, zone: str = "Europe/Paris") -> int:
    """The time of a local clock."""
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1_000)


@pytest.mark.parametrize(
    ("local", "is_open"),
    [("21:59", False), ("22:00", True), ("00:00", True), ("05:59", True), ("06:00", False)],
)
def test_hours_may_go_over_midnight(local: str, *, is_open: bool) -> None:
    """By the clock of their zone, in summer and in winter."""
    for day in ("2026-01-15", "2026-07-15"):
        assert NIGHTS.is_open(at_ms(f"{day} {local}")) is is_open


def test_the_next_hours_begin_by_the_clock_of_their_zone() -> None:
    """Also over the night in which that clock is set."""
    assert NIGHTS.opens_ms(at_ms("2026-03-28 12:00")) == at_ms("2026-03-28 22:00")
    assert NIGHTS.opens_ms(at_ms("2026-03-29 07:00")) == at_ms("2026-03-29 22:00")
    inside = at_ms("2026-03-29 03:30")
    assert NIGHTS.opens_ms(inside) == inside


@given(st.integers(0, 4_000_000_000_000), st.sampled_from([NIGHTS, DAYS]))
@examples()
def test_they_are_open_when_they_open_and_not_before(clock_ms: int, hours: SendingHours) -> None:
    """Nobody waits for longer than a day, but for the hour that a clock may lose."""
    opens_ms = hours.opens_ms(clock_ms)

    assert hours.is_open(opens_ms)
    assert clock_ms <= opens_ms <= clock_ms + timedelta(hours=25) / timedelta(milliseconds=1)
    assert opens_ms == clock_ms or not hours.is_open(opens_ms - 60_001)


def test_what_is_due_outside_the_hours_is_due_when_they_begin() -> None:
    """A delay counts from the commit, whatever hour it is."""
    times = SendingTimes(3_600_000, NIGHTS)

    assert times.due_ms(at_ms("2026-01-15 20:30")) == at_ms("2026-01-15 22:00")
    assert times.due_ms(at_ms("2026-01-15 22:30")) == at_ms("2026-01-15 23:30")
    assert (SendingTimes().is_limited, times.is_limited) == (False, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("22-06", "write them as 22:00-06:00 Europe/Paris"),
        ("22:00-24:00 UTC", "write them as"),
        ("22:00-06:00 Europe/Nowhere", "there is no time zone 'Europe/Nowhere'"),
        ("22:00-06:00 /etc/passwd", "there is no time zone"),
        ("06:00-06:00 UTC", "they begin and end at the same minute"),
    ],
)
def test_what_is_no_hours_is_refused(text: str, said: str) -> None:
    """When the configuration is read, and not at ten in the evening."""
    with pytest.raises(ValueError, match=said):
        parse_hours(text)
