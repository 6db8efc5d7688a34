"""Whether a database's files are still those that the agent opened, by their numbers alone.

None of them is opened here: a process that closes a descriptor of a file loses all of its locks on
it, SQLite's too (https://sqlite.org/howtocorrupt.html, section 2.2).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from streaming.core.model.errors import StateError


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
