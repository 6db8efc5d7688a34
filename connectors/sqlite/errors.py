"""SQLite's errors as those of the agent's loop, with what to do."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from connectors.agent.contract import StoreBusyError, StoreError
from connectors.sqlite.install.system import PREFIX, lost_tables_text
from streaming.core.model.errors import StateError

BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
UNREADABLE_SCHEMA = (
    f"the SQLite of this agent, {sqlite3.sqlite_version}, cannot read the schema of the database"
    " ({}): it uses what only a newer SQLite has, or more than this one was built to allow; run the"
    " agent with the SQLite that the applications have"
)
REMEDIES = {
    sqlite3.SQLITE_CORRUPT: (
        "the database file is damaged ({}): put a backup in its place, without -wal and -shm files,"
        " then start the agent, which finds out what is missing"
    ),
    sqlite3.SQLITE_NOTADB: (
        "this file is no SQLite database ({}): look at the path; if it was one, put a backup in its"
        " place, without -wal and -shm files, then start the agent, which finds out what is missing"
    ),
    sqlite3.SQLITE_FULL: (
        "no space is left for the database ({}): free some, then start the agent; what it was"
        " writing is rolled back, and it goes on where it was"
    ),
    sqlite3.SQLITE_IOERR: (
        "the database file cannot be read or written ({}): look at its disk, and whether the file"
        " or its -wal was replaced while it was open; then start the agent"
    ),
    sqlite3.SQLITE_READONLY: (
        "the database cannot be written ({}): let the agent's user write the file and its folder,"
        " then start the agent"
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the database cannot be opened ({}): let the agent's user write the file and its folder,"
        " then start the agent"
    ),
}
"""SQLite's primary error code -> what the agent says."""


_OWN_TABLE_LOST = re.compile(rf"no such table: (?:main\.)?({PREFIX}\w+)")


@contextmanager
def store_errors() -> Iterator[None]:
    """Raise SQLite's errors as the StoreError that the agent's loop handles."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in BUSY:
            raise StoreBusyError(str(error)) from error
        if lost := _OWN_TABLE_LOST.fullmatch(str(error)):
            raise StateError(lost_tables_text([lost[1]])) from error
        raise StoreError(remedy(code, error).format(error)) from error


def remedy(code: int, error: sqlite3.Error) -> str:
    """What the agent says of an error of this primary code; `{}`: SQLite's words."""
    if str(error).startswith("malformed database schema"):  # SQLite calls this file corrupt too
        return UNREADABLE_SCHEMA
    return REMEDIES.get(code, "{}")
