"""What an agent keeps for people: rows that are not replicated, and those that were overwritten."""

from collections.abc import Iterator
from datetime import UTC, datetime

from connectors.postgres.sql import Session

LISTED_MAX = 20
"""How many rows are listed, at most."""

_UNCARRIED = """SELECT "table", key, since_ms, faults, count(*) OVER ()
FROM slackwater.uncarried ORDER BY since_ms, "table", key LIMIT %s"""


def uncarried_rows(session: Session) -> Iterator[str]:
    """The first rows that an agent lists as not replicated, and how many there are."""
    rows = session.execute(_UNCARRIED, (LISTED_MAX,)).fetchall() if _has(session) else []
    for table, key, since_ms, faults, _ in rows:
        since = datetime.fromtimestamp(since_ms / 1000, UTC)
        yield f"table {table} row {key}, since {since:%Y-%m-%d %H:%M:%S} UTC: {faults}"
    if rows and rows[0][4] > LISTED_MAX:
        yield f"and {rows[0][4] - LISTED_MAX} more rows"


def saved_count(session: Session) -> int:
    """How many rows are saved because they were nowhere else when they were overwritten."""
    if not _has(session):
        return 0
    (count,) = session.execute("SELECT count(*) FROM slackwater.saved").fetchone() or (0,)
    return int(count)


def _has(session: Session) -> bool:
    query = (
        "SELECT to_regclass('slackwater.uncarried') IS NOT NULL"
        " AND to_regclass('slackwater.saved') IS NOT NULL"
    )
    return session.execute(query).fetchone() == (True,)
