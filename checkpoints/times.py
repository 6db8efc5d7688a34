"""Times as the tables hold them."""

from datetime import UTC, datetime


def time_of(milliseconds: int) -> datetime:
    """Milliseconds since 1970 as the tables hold them."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def ms_of(time: datetime) -> int:
    """The tables' time as milliseconds since 1970."""
    return round(time.timestamp() * 1000)
