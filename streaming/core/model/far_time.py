"""Times that no datetime has: years before 1, years after 9999 and PostgreSQL's two infinities."""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import total_ordering
from math import inf

_TEXT = re.compile(
    r"(0000|-(?!0000)\d{4}|[+-][1-9]\d{4,5})-(\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)", re.ASCII
)
_INFINITIES = {"-infinity": -inf, "infinity": inf}


@total_ordering
@dataclass(frozen=True, slots=True)
class FarTime:
    """A time that no datetime has, as its canonical text (docs/wire.md, Times far away).

    It compares by value, with datetimes too. ValueError if the text is no such time.
    """

    text: str

    def __post_init__(self) -> None:
        year, rest = self._year_and_rest()
        if rest:  # the Gregorian calendar repeats itself every 400 years
            datetime.fromisoformat(f"{2000 + int(year) % 400}-{rest}")

    def __str__(self) -> str:
        return self.text

    def __lt__(self, other: object) -> bool:
        if isinstance(other, FarTime):
            return self._year_and_rest() < other._year_and_rest()
        return self._year_and_rest()[0] < 1 if isinstance(other, datetime) else NotImplemented

    def _year_and_rest(self) -> tuple[float, str]:
        """The astronomical year, in which 0 is 1 BC, and the text behind it."""
        infinity = _INFINITIES.get(self.text)
        if infinity is not None:
            return infinity, ""
        found = _TEXT.fullmatch(self.text)
        if found is None:
            raise ValueError(f"{self.text!r} is no time before year 1 or after 9999")
        return int(found[1]), found[2]


def far_time(text: str) -> FarTime | None:
    """Return the time of this canonical text; None: it is the text of none."""
    try:
        return FarTime(text)
    except ValueError:
        return None
