"""A database file that is only read: for people who look before anything is changed."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from connectors.sqlite.load import Prepare, nothing
from connectors.sqlite.values.columns import CREATE_SCALES, scales
from connectors.sqlite.values.text import read_as_stored
from streaming.core.model.errors import StateError


@contextmanager
def reading(database: Path, prepare: Prepare = nothing) -> Iterator[sqlite3.Connection]:
    """A connection that reads values as an agent does; StateError: there is no such database.

    `prepare` registers on it what the application's connections have.
    """
    if not database.is_file():
        raise StateError(f"there is no database {database}: give the path of the SQLite file")
    uri = f"{database.absolute().as_uri()}?mode=ro"
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
