"""Wait until a running hub has carried out the commands that were appended."""

import time
from pathlib import Path

from checkpoints.reading.reader import Reader
from streaming.cli.inputs import now, opened
from streaming.facts.freshness import doubt_of, freshness
from streaming.terminal.output import write_error

POLL_S = 0.2


def taken(config: Path, number: int, wait_s: float) -> Reader | None:
    """The state as soon as a batch has taken the command of this number; None: none did in time.

    Standard error is told once that no hub may be there to take it.
    """
    started_s, is_told = time.monotonic(), False
    while True:
        _, reader = opened(config)
        if reader.commit is not None and reader.commit.command_number >= number:
            return reader
        if time.monotonic() - started_s >= wait_s:
            return None
        doubt = doubt_of(freshness(reader, now().timestamp()))
        if doubt is not None and not is_told:
            write_error(f"waiting, though {doubt}")
            is_told = True
        time.sleep(POLL_S)
