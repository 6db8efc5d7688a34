"""What every user of the machine can read of every process: its command line."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOOK_S = 0.02


@contextmanager
def command_lines() -> Iterator[set[bytes]]:
    """Every command line of the machine that is seen while the block takes."""
    seen, ended = set[bytes](), threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_S):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):  # a process that has ended
                    seen.add(file.read_bytes())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
