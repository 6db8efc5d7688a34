"""A time in PostgreSQL's text of ISO style in UTC, and in the wire's."""

import re

_SERVER = re.compile(
    r"(\d{4,6})-(\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:\+00)?( BC)?", re.ASCII
)
_WIRE = re.compile(r"([+-]?\d{4,6})-(\d\d-\d\d)T(\d\d:\d\d:\d\d\.\d{6})Z", re.ASCII)
INFINITE = frozenset({"infinity", "-infinity"})


def time_of_text(text: str) -> str | None:
    """The wire's text of a time, which has astronomical years; None: the text is none."""
    if text in INFINITE:
        return text
    found = _SERVER.fullmatch(text)
    if found is None:
        return None
    year, day, clock, fraction, is_bc = found.groups(default="")
    if is_bc:
        before = int(year) - 1  # 1 BC is the year 0
        year = f"-{before:04}" if before else "0000"
    elif len(year) > 4:
        year = f"+{year}"
    return f"{year}-{day}T{clock}.{fraction:0<6}Z"


def text_of_time(text: str) -> str | None:
    """PostgreSQL's text of the wire's time; None: the text is none."""
    if text in INFINITE:
        return text
    found = _WIRE.fullmatch(text)
    if found is None:
        return None
    year, day, clock = found.groups()
    number = int(year)
    shown, era = (f"{number:04}", "") if number > 0 else (f"{1 - number:04}", " BC")
    return f"{shown}-{day} {clock}+00{era}"
