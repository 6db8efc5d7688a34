"""A part of the configuration as its files have it now."""

import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from streaming.core.access.port_access import PortAccess
from streaming.core.model.errors import HubError

LOG = logging.getLogger(__name__)

LOOK_S = 2.0
"""How often the files are looked at, at most."""

Value = TypeVar("Value")


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


class LiveValue(Generic[Value]):
    """A value that is read again when a file that it comes from, or that it names, is changed.

    `name`: what the log calls it. `read`: reads it; HubError or OSError: what was read before
    stays, and the log says so. `sources`: the files that it is read from; they may hold more than
    it. `named`: those that a value names. Several threads may ask.
    """

    def __init__(
        self,
        name: str,
        value: Value,
        read: Callable[[], Value],
        sources: Callable[[], Iterable[Path]],
        named: Callable[[Value], Iterable[Path]] = lambda _: (),
    ) -> None:
        self._name, self._read, self._sources, self._named = name, read, sources, named
        self.latest = value
        """The value as it was last read; no file is looked at for it."""
        self._looked_s = time.monotonic()
        self._marks = self._marked(value)
        self._number, self._failure = 0, ""
        self._turn = Lock()
        self.changed: Callable[[Value], None] = lambda _: None
        """Called with the new value when it was read again."""

    def now(self) -> Value:
        """The value as it is now."""
        self._look()
        return self.latest

    @property
    def number(self) -> int:
        """How often it, or a file of it, was changed: what an older one opened is stale."""
        self._look()
        return self._number

    def _look(self) -> None:
        with self._turn:
            if time.monotonic() - self._looked_s >= LOOK_S:
                self._looked_s = time.monotonic()
                self._read_again()

    def _read_again(self) -> None:
        try:
            found = self._marked(self.latest)
            if found == self._marks:
                return
            value = self._read()
            old = self._marks
            self._marks = {
                file: found.get(file, mark) for file, mark in self._marked(value).items()
            }
        except (HubError, OSError) as error:
            if str(error) != self._failure:
                LOG.warning("%s cannot be read again, so the old one stays: %s", self._name, error)
            self._failure = str(error)
            return
        is_same = value == self.latest and all(
            self._marks[file] == old.get(file) for file in self._named(value)
        )
        self.latest, self._failure = value, ""
        if is_same:
            return
        self._number += 1
        self.changed(value)
        LOG.info("%s: its files were changed and are read again", self._name)

    def _marked(self, value: Value) -> dict[Path, FileMark | None]:
        return {file: mark_of(file) for file in (*self._sources(), *self._named(value))}


class LiveAccess(LiveValue[PortAccess]):
    """The access to a port, whose token is read again when a file that it comes from is changed.

    All else of it stays as it was at the start.
    """

    def __init__(
        self,
        access: PortAccess,
        read_token: Callable[[], str | None] | None = None,
        files: Callable[[], Iterable[Path]] = tuple,
    ) -> None:
        read = read_token or (lambda: access.token)
        super().__init__("http.token", access, lambda: self.latest.with_token(read()), files)
