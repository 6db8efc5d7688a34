"""The lock by which a database has one agent at most: a locked file beside it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.core.model.errors import StateError


@contextmanager
def exclusive(database: Path) -> Iterator[None]:
    """Lock the database against a second agent; StateError if one runs, or there is no file."""
    if not database.is_file():
        raise StateError(f"there is no database {database}: check the path given to the agent")
    with lock_file(database).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateError(f"another agent has {database} open: stop it first") from error
        yield


def lock_file(database: Path) -> Path:
    """The file that an agent of this database holds locked."""
    return database.with_name(f"{database.name}.agent")
