"""The saved rows of a database, for a person: listed, written to a file, and forgotten.

In the file each is a line of JSON, with the values as PostgreSQL writes them, null for null.
"""

from collections.abc import Iterator
from pathlib import Path

import orjson

from connectors.agent.found import SavedImage
from connectors.agent.saved_lines import line, write
from connectors.postgres.sql import Session
from streaming.core.model.errors import StateError

_LISTED = 'SELECT id, at, "table", key, why, row::text FROM slackwater.saved ORDER BY id'


def listed(session: Session) -> list[SavedImage]:
    """The saved rows, the oldest first."""
    return [one for one, _ in _rows(session)]


def export(session: Session, path: Path) -> int:
    """Write each saved row as a line of JSON to a new file; how many there are."""
    if path.exists():
        raise StateError(f"{path} is there already: name a new file")
    lines = (
        line(one.table, one.key, row, at=one.at.isoformat(timespec="milliseconds"), why=one.why)
        for one, row in _rows(session)
    )
    try:
        return write(lines, path)
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error}") from error


def forget(session: Session, last: int) -> int:
    """Delete the saved rows up to this id; how many there were."""
    return session.execute("DELETE FROM slackwater.saved WHERE id <= %s", (last,)).rowcount


def _rows(session: Session) -> Iterator[tuple[SavedImage, dict[str, str | None]]]:
    query = "SELECT to_regclass('slackwater.saved') IS NOT NULL"
    (is_there,) = session.execute(query).fetchone() or (False,)
    for *row, texts in session.execute(_LISTED).fetchall() if is_there else []:
        yield SavedImage(*row), orjson.loads(texts)
