"""Whether somebody wrote a database's file past SQLite, as a copy over a file at work does.

In WAL mode only a checkpoint writes the file. The index of the write-ahead log says up to which
frame it is about to copy before it writes, and up to which it has copied behind its last write
(https://sqlite.org/walformat.html, "The WAL-Index File Format"). So a file that changes while both
stand still and are equal was written by somebody else. SQLite does not notice: the newest pages are
in the log, the agent's own among them, and what is under them is of another file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from streaming.core.model.errors import StateError

INDEX_BYTES = 136
"""Of the index up to its first table of frames."""


class LogState(NamedTuple):
    """What a checkpoint changes in the index; numbers of frames in the machine's byte order."""

    salts: bytes  # of the write-ahead log that it is of
    copied: bytes
    about_to_copy: bytes


@dataclass(frozen=True, slots=True)
class FileState:
    """When the file of a database was last written, and what its log's checkpoints had done."""

    modified_ns: int
    log: LogState

    @classmethod
    def of(cls, database: Path) -> Self | None:
        """The state now; None: there is no index, or a checkpoint is at work."""
        log = _log_state(database)
        modified_ns = database.stat().st_mtime_ns
        is_at_rest = log is not None and log.copied == log.about_to_copy
        return cls(modified_ns, log) if log and is_at_rest and log == _log_state(database) else None

    def check(self, database: Path, now: Self) -> None:
        """Raise StateError if the file was written since, and by no checkpoint."""
        if now.log == self.log and now.modified_ns != self.modified_ns:
            raise StateError(
                f"{database} was written past SQLite while its agent ran, as a copy over it does,"
                " and may have lost rows or be damaged: stop the applications that write to it,"
                f" delete {database.name}-wal and {database.name}-shm, put a whole copy in its"
                " place, then start the agent, which finds out what is missing"
            )


def _log_state(database: Path) -> LogState | None:
    try:
        with database.with_name(f"{database.name}-shm").open("rb") as file:
            found = file.read(INDEX_BYTES)
    except FileNotFoundError:
        return None
    is_whole = len(found) == INDEX_BYTES
    return LogState(found[32:40], found[96:100], found[128:132]) if is_whole else None
