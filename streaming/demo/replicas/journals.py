"""The progress of live replicas' journals, queried while agents and clients are running."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def published_all(database: Path) -> bool:
    """Return whether every row of the journal is in the replica's topic."""
    (is_so,) = _query_row(
        database,
        "SELECT NOT EXISTS (SELECT 1 FROM _slackwater_journal WHERE id > published)"
        " FROM _slackwater_position",
    )
    return bool(is_so)


def last_write(database: Path) -> str | None:
    """The largest CSN that was issued here, or None."""
    (csn,) = _query_row(database, "SELECT max(csn) FROM _slackwater_journal WHERE kind = 'change'")
    return None if csn is None else str(csn)


def session_of(database: Path) -> str | None:
    """The session that the replica's agent started last."""
    (session,) = _query_row(database, "SELECT session FROM _slackwater_position")
    return None if session is None else str(session)


def _query_row(database: Path, query: str) -> tuple[Any, ...]:
    with closing(sqlite3.connect(database, timeout=10)) as connection:
        row: tuple[Any, ...] = connection.execute(query).fetchone()
    return row
