"""The position that is stored in a replica's database with its rows."""

import sqlite3
from contextlib import closing
from pathlib import Path

from connectors.sqlite.connections import reading
from connectors.sqlite.journal.entries import ruv_of
from streaming.core.delivery.consumer import Position


def stored_position(connection: sqlite3.Connection) -> Position:
    """The position in an open database."""
    query = (
        "SELECT session, last, covers, epoch, ruv, generation, reached FROM _slackwater_position"
    )
    with closing(connection.execute(query)) as cursor:
        session, last, covers, epoch, ruv, generation, reached = cursor.fetchone()
    return Position(session, last, covers, epoch, ruv_of(ruv), generation, reached)


def position_of(database: str | Path) -> tuple[int, Position]:
    """The rid and the position of the replica in a file; StateError if it is none."""
    with reading(database) as connection:
        with closing(connection.execute("SELECT rid FROM _slackwater_origin")) as cursor:
            (rid,) = cursor.fetchone()
        return rid, stored_position(connection)
