"""The position that is stored in a replica's database with its rows."""

import sqlite3
from contextlib import closing
from pathlib import Path

from connectors.sqlite.connections import reading
from connectors.sqlite.journal.entries import ruv_of, ruv_text
from streaming.core.delivery.consumer import Position


def stored_position(connection: sqlite3.Connection) -> Position:
    """The position in an open database, which an older agent may have made."""
    with closing(connection.execute("SELECT * FROM _slackwater_position")) as cursor:
        names = [column[0] for column in cursor.description]
        row = dict(zip(names, cursor.fetchone(), strict=True))
    return Position(
        row["session"],
        row["last"],
        row["covers"],
        row["epoch"],
        ruv_of(row["ruv"]),
        row["generation"],
        row["reached"],
        row.get("agreement", ""),
    )


def store_position(connection: sqlite3.Connection, position: Position) -> None:
    """Store a position; the session is stored by its hello."""
    connection.execute(
        "UPDATE _slackwater_position SET last = ?, covers = ?, epoch = ?, ruv = ?, generation = ?,"
        " reached = ?, agreement = ?",
        (
            position.last,
            position.covers,
            position.epoch,
            ruv_text(position.ruv),
            position.generation,
            position.reached,
            position.agreement,
        ),
    )


def position_of(database: str | Path) -> tuple[int, Position]:
    """The rid and the position of the replica in a file; StateError if it is none."""
    with reading(database) as connection:
        with closing(connection.execute("SELECT rid FROM _slackwater_origin")) as cursor:
            (rid,) = cursor.fetchone()
        return rid, stored_position(connection)
