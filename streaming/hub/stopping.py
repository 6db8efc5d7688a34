"""Stopping a hub in order: what SIGTERM and SIGINT do, from the first import to the last batch.

This module imports nothing heavy, so that its handlers are there before Spark is imported.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StartInterrupted(BaseException):
    """A signal came while the hub was starting."""


class StopSignals:
    """The signals to stop; `end` is set by the first one.

    While the hub starts, a signal raises StartInterrupted in the main thread: each of its steps may
    be cut off, as by a kill, and some wait for a broker. Later the batch in progress is completed.
    """

    def __init__(self) -> None:
        self.end = threading.Event()
        self._starting = True

    def receive(self, _number: int, _frame: FrameType | None) -> None:
        """The signal handler."""
        self.end.set()
        if self._starting:
            self._starting = False  # a second signal does not cut off the end in order
            raise StartInterrupted

    def started(self) -> None:
        """From here on a signal only sets `end`."""
        self._starting = False


@contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """Receive SIGTERM and SIGINT as long as the block takes; StartInterrupted ends it in order."""
    stop = StopSignals()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop.receive)
    try:
        yield stop
    except StartInterrupted:
        return
