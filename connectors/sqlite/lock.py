"""The lock by which a database has one agent at most: a locked file beside it.

It has the name of the database, which must be the only one: SQLite keeps its write-ahead log by
that name too, and who opens the file by another one destroys it
(https://sqlite.org/howtocorrupt.html, section 2.5).
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.core.model.errors import StateError


@contextmanager
def exclusive(database: Path) -> Iterator[None]:
    """Lock the database against a second agent; StateError if one runs, or may by another name.

    So it is if there is no file.
    """
    if not database.is_file():
        raise StateError(f"there is no database {database}: check the path given to the agent")
    if complaint := names_complaint(database):
        raise StateError(complaint)
    with lock_file(database).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateError(f"another agent has {database} open: stop it first") from error
        yield


def lock_file(database: Path) -> Path:
    """The file that an agent of this database holds locked."""
    real = database.resolve()
    return real.with_name(f"{real.name}.agent")


def names_complaint(database: Path) -> str | None:
    """What is wrong with a file of several names; None: it has one. The file is not opened."""
    names = database.stat().st_nlink
    if names == 1:
        return None
    return (
        f"{database} has {names} names (hard links): an agent or an application that opens it by"
        " another one writes to another log, and the file is damaged; `find DIR -samefile"
        f" {database}` lists them: remove the others, or copy the file"
    )
