"""Connections to a database file: the agent's, and one that only reads, for people who look."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from connectors.sqlite.load import Prepare, nothing
from connectors.sqlite.values.columns import CREATE_SCALES, scales
from connectors.sqlite.values.text import read_as_stored
from streaming.core.model.errors import StateError

BUSY_MS = 5_000
"""How long the agent waits for a writer before it retries later."""


def connect(
    database: str | Path, busy_ms: int = BUSY_MS, prepare: Prepare = nothing
) -> sqlite3.Connection:
    """A connection in autocommit mode, which reads text as it is stored.

    `prepare` registers on it what the application's connections have.
    """
    connection = sqlite3.connect(database, timeout=busy_ms / 1000, isolation_level=None)
    try:
        prepare(connection)
    except BaseException:
        connection.close()
        raise
    connection.row_factory, connection.isolation_level = None, None
    read_as_stored(connection)
    connection.execute("PRAGMA synchronous = FULL")  # what was published must not be lost
    connection.execute("PRAGMA foreign_keys = OFF")
    return connection


@contextmanager
def reading(database: str | Path, prepare: Prepare = nothing) -> Iterator[sqlite3.Connection]:
    """A connection that reads values as an agent does; StateError: there is no such database."""
    file = Path(database)
    if not file.is_file():
        raise StateError(f"there is no database {database}: give the path of the SQLite file")
    uri = f"{file.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        prepare(connection)
        connection.row_factory, connection.isolation_level = None, None
        try:
            read_as_stored(connection)
            connection.execute(CREATE_SCALES.replace("CREATE TABLE", "CREATE TEMP TABLE"))
            rows = scales()
            connection.executemany("INSERT INTO temp._slackwater_scales VALUES (?, ?, ?, ?)", rows)
            yield connection
        except sqlite3.Error as error:
            raise StateError(f"{database} cannot be read: {error}") from error
