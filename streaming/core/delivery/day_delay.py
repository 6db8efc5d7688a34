"""How late what one replica wrote was at one consumer on one day."""

from dataclasses import dataclass, replace

DAY_MS = 86_400_000
MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class DayDelay:
    """The delay of an origin's changes at a consumer on one day, as of the hub's clock `at_ms`.

    `day`: days since 1970, UTC. `complete_to_ms`: everything that the origin wrote up to then is at
    the consumer, known since `known_since_ms`, by its position `covers`. `is_known`: it still is;
    otherwise the consumer was set back, or its rows are copied anew, and the delay goes on from
    there. `is_lacking`: the consumer lacks a change of the origin, or it is not known. `last_ms`:
    how long before `at_ms` the point was that is complete; `worst_ms`: the longest that it was that
    day; `above_minute_ms`: for how much of the day it was longer than a minute.
    """

    origin: int
    consumer: int
    day: int
    complete_to_ms: int
    covers: int
    known_since_ms: int
    at_ms: int
    last_ms: int
    worst_ms: int
    above_minute_ms: int = 0
    is_lacking: bool = False
    is_known: bool = True

    def until(self, at_ms: int, from_ms: int) -> "DayDelay":
        """The delay up to a time of this day, during which nothing after `from_ms` was there."""
        worst_ms, above_ms = self.counted(at_ms, from_ms)
        last_ms = max(0, at_ms - from_ms)
        return replace(
            self, at_ms=at_ms, last_ms=last_ms, worst_ms=worst_ms, above_minute_ms=above_ms
        )

    def counted(self, at_ms: int, from_ms: int) -> tuple[int, int]:
        """Of the delay `until` then: `worst_ms` and `above_minute_ms`."""
        above_ms = at_ms - max(self.at_ms, from_ms + MINUTE_MS)
        return max(self.worst_ms, at_ms - from_ms), self.above_minute_ms + max(0, above_ms)

    def of_day(self, day: int) -> "DayDelay":
        """The delay at the beginning of a later day; of those between, nothing is counted."""
        begin_ms = day * DAY_MS
        return replace(self, day=day, at_ms=begin_ms, last_ms=0, worst_ms=0, above_minute_ms=0)


def day_of(at_ms: int) -> int:
    """The day of a time, in days since 1970, UTC."""
    return at_ms // DAY_MS
