"""How far the journals of live replicas are: asked while agents and clients are at work."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def published_all(database: Path) -> bool:
    """Claim that every row of the journal is in the replica's topic."""
    (is_so,) = _ask(
        database,
        "SELECT NOT EXISTS (SELECT 1 FROM _slackwater_journal WHERE id > published)"
        " FROM _slackwater_position",
    )
    return bool(is_so)


def last_write(database: Path) -> str | None:
    """The largest CSN that was given here, or None."""
    (csn,) = _ask(database, "SELECT max(csn) FROM _slackwater_journal WHERE kind = 'change'")
    return None if csn is None else str(csn)


def _ask(database: Path, query: str) -> tuple[Any, ...]:
    with closing(sqlite3.connect(database, timeout=10)) as connection:
        row: tuple[Any, ...] = connection.execute(query).fetchone()
    return row
