"""A database's file: locked, so that it has one agent at most, and still the one that was opened.

The lock is a file beside it of the database's name, which must be the only one: SQLite keeps its
write-ahead log by that name too, and who opens the file by another one destroys it
(https://sqlite.org/howtocorrupt.html, section 2.5).

Whether the files are still the same is told by their numbers alone. None of them is opened here: a
process that closes a descriptor of a file loses all of its locks on it, SQLite's too (section 2.2).
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

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


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """The database, or its write-ahead log, that stood at the path when it was opened."""

    path: Path
    device: int
    inode: int

    @classmethod
    def at(cls, path: Path) -> Self:
        """The file that is there now; OSError if there is none."""
        found = path.stat()
        return cls(path, found.st_dev, found.st_ino)

    def check(self) -> None:
        """Raise StateError unless the same file is there: writes go to another one, uncaptured."""
        found = self._found()
        if found is None:
            raise StateError(
                f"{self.path} was deleted or moved while its agent ran: stop the applications that"
                " write to it, restore the file or create it again with its tables, then start the"
                " agent, which finds out what is missing"
            )
        if found != self:
            raise StateError(replaced_text(self.path))

    def check_wal(self) -> None:
        """The same of a write-ahead log, which nobody puts back: SQLite makes another."""
        if self._found() != self:
            raise StateError(
                f"{self.path} was deleted or replaced while its agent ran, and what is written to"
                " the database may be lost: stop the applications that write to it, then start the"
                " agent, which finds out what is missing"
            )

    def _found(self) -> Self | None:
        try:
            return self.at(self.path)
        except FileNotFoundError:
            return None


def replaced_text(path: Path) -> str:
    """What an agent says whose database is not the one that it works on."""
    return (
        f"{path} was replaced while its agent ran, and nobody captures what is written to it: stop"
        " the applications that write to it, then start the agent, which finds out what is missing"
    )
