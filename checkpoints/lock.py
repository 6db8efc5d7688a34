"""One hub for each state: the second one is refused before it starts anything.

The commit protocol is what protects the state (checkpoints/commit.py); a lock of the operating
system only says so early, and only among hubs of one machine. It ends with its process.
"""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.core.model.errors import StateError

FILE = "hub.lock"


@contextmanager
def only_hub(root: Path) -> Iterator[None]:
    """Hold the lock of a state root; StateError, which names its owner, if a hub has it."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / FILE).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            owner = file.read().strip() or "another hub"
            raise StateError(
                f"{owner} works on the state in {root}: stop it first, or name another folder in"
                " hub.state"
            ) from error
        except OSError:
            pass  # a file system without locks: the commit protocol alone tells the two apart
        file.truncate(0)
        file.write(f"the hub with process id {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield
