"""One hub for each state: the second one is refused before it starts anything.

The commit protocol is what protects the state (checkpoints/commit/protocol.py); a lock of the
operating system only says so early, and only among hubs of one machine. It ends with its process.
"""

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TextIO

from checkpoints.root import local_folder
from streaming.core.access.root import StateRoot
from streaming.core.model.errors import StateError

FILE = "hub.lock"
TRIES = 5
TRY_EVERY_S = 0.05
"""Who only looks at the lock holds it for a moment, so a hub tries more than once."""


@dataclass(frozen=True, slots=True)
class StateLock:
    """Whether a hub holds the lock, which does, or did last, and since when.

    `is_held` None: it cannot be said here: no hub has run here yet, or the last one did elsewhere.
    """

    is_held: bool | None = None
    owner: str = ""
    since_ms: int = 0


def read_lock(root: StateRoot) -> StateLock:
    """Look at the lock of a state root without keeping it."""
    try:
        with (local_folder(root) / FILE).open(encoding="utf-8") as file:
            is_held, owner = _is_held(file), file.read().strip()
            since_ms = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
    except OSError:  # no file, or a file system without locks
        return StateLock()
    if not is_held and not owner.endswith(f" on {socket.gethostname()}"):
        return StateLock(None, owner, since_ms)
    return StateLock(is_held, owner, since_ms)


def _is_held(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


@contextmanager
def only_hub(root: StateRoot, waits: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the lock of a state root; StateError, which names its owner, if a hub has it.

    `waits`: is called with the owner instead, and then the lock is waited for, as long as it takes.
    """
    folder = local_folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE).open("a+", encoding="utf-8") as file:
        try:
            _lock(file)
        except BlockingIOError as error:
            file.seek(0)
            owner = file.read().strip() or "another hub"
            if waits is None:
                raise StateError(
                    f"{owner} works on the state in {root}: stop it first, or name another state in"
                    " hub.state"
                ) from error
            waits(owner)
            fcntl.flock(file, fcntl.LOCK_EX)  # of a process that dies it is free at once
        except OSError as error:
            if waits is not None:
                raise StateError(
                    f"a standby waits for a lock, and the file system of {root} has none ({error})"
                ) from error
            # otherwise the commit protocol alone tells the two apart
        file.truncate(0)
        file.write(f"the hub with process id {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield


def start_again(root: StateRoot) -> None:
    """Say that the hub that has the lock starts again, without letting go of it."""
    with suppress(OSError):
        (local_folder(root) / FILE).touch()


def _lock(file: TextIO) -> None:
    """Take the lock; BlockingIOError if a hub keeps it."""
    for _ in range(TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(TRY_EVERY_S)
        else:
            return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
