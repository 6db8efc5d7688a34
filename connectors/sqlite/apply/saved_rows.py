"""The saved rows of a database, for a person: listed, written to a file, and forgotten.

In the file each is a line of JSON, with the values as SQLite held them. Integers, floats, text and
null are JSON's own. Bytes are {"blob": base64}, text that is no valid Unicode is
{"text_bytes": base64}, and an infinite float is {"real": "inf"}.
"""

import base64
import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from connectors.agent import saved_lines
from connectors.agent.found import SavedImage
from connectors.sqlite.apply import saved
from connectors.sqlite.connections import connect, reading
from connectors.sqlite.transaction import atomic
from connectors.sqlite.values.spellings import Stored
from connectors.sqlite.values.text import stored_bytes
from streaming.core.model.errors import StateError
from streaming.core.model.values import is_utf8


def listed(database: str | Path) -> list[SavedImage]:
    """The saved rows, the oldest first; StateError if there is no such database."""
    with reading(database) as connection:
        return list(_rows(connection))


def export(database: str | Path, path: Path) -> int:
    """Write each saved row as a line of JSON to a new file; how many there are."""
    if path.exists():
        raise StateError(f"{path} is there already: name a new file")
    with reading(database) as connection, atomic(connection, "BEGIN"):
        lines = (
            line(
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


def forget(database: str | Path, last: int) -> int:
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


def line(table: str, key: str, row: Mapping[str, Stored], **more: str) -> str:
    """A saved row; `key`: as the wire has it."""
    return saved_lines.line(table, key, {n: stored_json(v) for n, v in row.items()}, **more)


def stored_json(value: Stored) -> object:
    """A value as it stands in such a line."""
    match value:
        case bytes():
            return {"blob": base64.b64encode(value).decode()}
        case str() if not is_utf8(value):
            return {"text_bytes": base64.b64encode(stored_bytes(value)).decode()}
        case float() if math.isinf(value):
            return {"real": str(value)}
        case _:
            return value
