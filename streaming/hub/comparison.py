"""The comparison of rows beside the hub: its process is started, started again, and ended."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.config.config import Config

LOG = logging.getLogger("slackwater")

AGAIN_S = 30.0
"""The pause before one that ended is started again."""
LOOK_S = 1.0
"""How often it is looked whether it runs."""


@contextmanager
def compared_beside(path: Path, config: Config) -> Iterator[None]:
    """Compare the rows of each agreement with a section `compare` as long as the block takes.

    `path`: the configuration, as the process reads it. Nothing that happens to it ends the hub.
    """
    if not config.compared:
        yield
        return
    end = threading.Event()
    keeper = threading.Thread(target=_keep, args=(path, end), name="comparison", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        end.set()
        keeper.join()


def _keep(path: Path, end: threading.Event) -> None:
    while not end.is_set():
        try:
            why = _run(path, end)
        except OSError as error:
            why = str(error)
        if not end.is_set():
            LOG.error("the comparison beside the hub ended (%s): again in %.0f s", why, AGAIN_S)
            end.wait(AGAIN_S)


def _run(path: Path, end: threading.Event) -> str:
    """Run it until it ends or the hub does; how it ended.

    Who has the other end of its standard input is this process alone, so it notices our end, also
    by a kill. A Ctrl-C in a terminal is for the hub, so it is in a group of its own.
    """
    command = [sys.executable, "-m", "streaming.compare.beside", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0) as process:
        while process.poll() is None and not end.wait(LOOK_S):
            pass
        process.kill()  # its end needs no order
    code = process.returncode
    return f"by signal {-code}" if code < 0 else f"exit code {code}"
