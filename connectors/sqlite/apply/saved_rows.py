"""The saved rows of a database, for a person: listed, written to a file, and forgotten."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from connectors.agent.found import SavedImage
from connectors.sqlite.apply import saved, saved_lines
from connectors.sqlite.atomic import atomic
from connectors.sqlite.reading import reading
from connectors.sqlite.store import connect
from streaming.core.model.errors import StateError


def listed(database: Path) -> list[SavedImage]:
    """The saved rows, the oldest first; StateError if there is no such database."""
    with reading(database) as connection:
        return list(_rows(connection))


def export(database: Path, path: Path) -> int:
    """Write each saved row as a line of JSON to a new file; how many there are."""
    if path.exists():
        raise StateError(f"{path} is there already: name a new file")
    with reading(database) as connection, atomic(connection, "BEGIN"):
        lines = (
            saved_lines.line(
                one.table,
                one.key,
                dict(saved.values_of(connection, one.id)),
                at=one.at.isoformat(timespec="milliseconds"),
                why=one.why,
            )
            for one in _rows(connection)
        )
        try:
            return saved_lines.write(lines, path)
        except OSError as error:
            raise StateError(f"{path} cannot be written: {error}") from error


def forget(database: Path, last: int) -> int:
    """Delete the saved rows up to this id; how many there were."""
    try:
        with closing(connect(database)) as connection, atomic(connection):
            return saved.forget_up_to(connection, last)
    except sqlite3.Error as error:
        raise StateError(f"{database}: {error}; nothing was forgotten") from error


def _rows(connection: sqlite3.Connection) -> Iterator[SavedImage]:
    if not saved.is_there(connection):
        return
    query = 'SELECT id, at, "table", key, why FROM _slackwater_saved ORDER BY id'
    for id_, at_ms, table, key, why in connection.execute(query):
        yield SavedImage(id_, datetime.fromtimestamp(at_ms / 1000, UTC), table, key, why)
