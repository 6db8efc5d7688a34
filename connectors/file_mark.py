"""By what a file that was changed is told from what it was."""

from pathlib import Path
from typing import NamedTuple


class FileMark(NamedTuple):
    """Where a file is, and what its file system says of it; a link is followed."""

    file: Path
    inode: int
    bytes: int
    changed_ns: int


def mark_of(file: Path) -> FileMark | None:
    """The mark of a file as it is now; None: it cannot be seen."""
    try:
        found = file.stat()
    except OSError:
        return None
    return FileMark(file, found.st_ino, found.st_size, found.st_mtime_ns)
