"""What the default of a column gives, found out by SQLite itself in a table of its own."""

import sqlite3
from contextlib import closing

from connectors.sqlite.values.columns import json_sql, scales
from connectors.sqlite.values.image import wire_image
from connectors.sqlite.values.spellings import Stored
from connectors.sqlite.values.text import read_as_stored
from streaming.core.model.table import ColumnType


def default_value(declared: str, default: str) -> Stored:
    """The value that the default gives; None also if it cannot be evaluated here."""
    with closing(sqlite3.connect(":memory:")) as connection:
        read_as_stored(connection)
        if not _create(connection, declared, default):
            return None
        value: Stored = connection.execute("SELECT c FROM t").fetchone()[0]
        return value


def default_fault(
    declared: str, default: str, kind: ColumnType, *, is_exact: bool = False
) -> str | None:
    """Why the default's value cannot be carried as this type, and what to do; None if it can."""
    with closing(sqlite3.connect(":memory:")) as connection:
        read_as_stored(connection)
        if not _create(connection, declared, default):
            return None
        connection.execute("CREATE TABLE _slackwater_scales (low, exponent, first, second)")
        connection.executemany("INSERT INTO _slackwater_scales VALUES (?, ?, ?, ?)", scales())
        captured = f"SELECT '{{\"default\":' || {json_sql('c', kind, is_exact=is_exact)} || '}}'"
        faults = wire_image(connection.execute(f"{captured} FROM t").fetchone()[0]).faults
        return faults[0].removeprefix("default: ") if faults else None


def _create(connection: sqlite3.Connection, declared: str, default: str) -> bool:
    """Create table t with one row of the default; False: it needs what only the user's has."""
    for text in (f"({default})", default):
        try:
            connection.execute(f"CREATE TABLE t (c {declared} DEFAULT {text})")
            connection.execute("INSERT INTO t DEFAULT VALUES")
        except sqlite3.Error:
            connection.execute("DROP TABLE IF EXISTS t")
        else:
            return True
    return False
