"""When an agreement sends, as it is configured: its delay, and the hours of the day."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d) (\S+)")


@dataclass(frozen=True, slots=True)
class SendingHours:
    """The hours of each day at which an agreement sends, by the clock of a zone.

    `begin`, `end`: minutes since midnight; an end before the begin is of the next day.
    """

    begin: int
    end: int
    zone: str

    def is_open(self, clock_ms: int) -> bool:
        """Return whether it is one of these hours."""
        local = self._local(clock_ms)
        minute = local.hour * 60 + local.minute
        if self.begin < self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end

    def opens_ms(self, clock_ms: int) -> int:
        """When the first of these hours is that is not before a time."""
        if self.is_open(clock_ms):
            return clock_ms
        local = self._local(clock_ms)
        hour, minute = divmod(self.begin, 60)
        opening = local.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if opening <= local:
            opening = (opening + timedelta(days=1)).replace(hour=hour, minute=minute)
        return max(clock_ms, round(opening.timestamp() * 1_000))

    def _local(self, clock_ms: int) -> datetime:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=clock_ms)
        return at.astimezone(ZoneInfo(self.zone))


def parse_hours(text: str) -> SendingHours:
    """Parse `22:00-06:00 Europe/Paris`; ValueError says what is wrong."""
    found = _HOURS.fullmatch(text)
    if found is None:
        raise ValueError("write them as 22:00-06:00 Europe/Paris")
    first_h, first_min, last_h, last_min, zone = found.groups()
    try:
        ZoneInfo(zone)
    except (ValueError, LookupError, OSError):
        raise ValueError(f"there is no time zone {zone!r}: name one as Europe/Paris") from None
    begin, end = int(first_h) * 60 + int(first_min), int(last_h) * 60 + int(last_min)
    if begin == end:
        raise ValueError("they begin and end at the same minute: leave them out to send always")
    return SendingHours(begin, end, zone)


@dataclass(frozen=True, slots=True)
class SendingTimes:
    """When an agreement sends what is committed: `delay_ms` later, within its hours."""

    delay_ms: int = 0
    hours: SendingHours | None = None

    @property
    def is_limited(self) -> bool:
        """Return whether something may wait."""
        return bool(self.delay_ms) or self.hours is not None

    def is_open(self, clock_ms: int) -> bool:
        """Return whether anything is sent at this time."""
        return self.hours is None or self.hours.is_open(clock_ms)

    def due_ms(self, committed_ms: int) -> int:
        """When what was committed then is due."""
        due_ms = committed_ms + self.delay_ms
        return due_ms if self.hours is None else self.hours.opens_ms(due_ms)


AT_ONCE = SendingTimes()
"""An agreement that sends what is committed at once."""
