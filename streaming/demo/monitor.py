"""Monitors everything that runs: one place to wait, to be interrupted, and to fail.

A signal only sets a flag, so starting a process is never interrupted; `check` and `wait` read the
flag. A second signal forces the end.
"""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Protocol, Self

from streaming.core.model.errors import HubError

POLL_S = 0.1
LOG_LINES = 20
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class DemoError(HubError):
    """The demonstration failed; the text names the part and the reason."""


class Interrupted(Exception):  # noqa: N818 no error
    """A signal requested the end."""


class MonitoredPart(Protocol):
    """A part that has to run until it is stopped."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    @property
    def log(self) -> Path:
        """Its log."""

    def runs(self) -> bool:
        """Return whether it has not ended."""


class PartMonitor:
    """The signals received, and the parts that must be running."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.is_forced = False
        self.parts: list[MonitoredPart] = []
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._record_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _record_signal(self, number: int, _frame: FrameType | None) -> None:
        self.is_forced = self.signal is not None
        self.signal = self.signal or number

    def check(self) -> None:
        """Interrupted if a signal came, DemoError with a log's tail if a part has ended."""
        if self.signal is not None:
            raise Interrupted
        for part in self.parts:
            if not part.runs():
                raise DemoError(f"{part.name} has ended; {part.log} ends with:\n{tail(part.log)}")

    def wait(
        self,
        until: Callable[[], bool],
        limit_s: float,
        complaint: Callable[[], str],
        every_s: float = POLL_S,
    ) -> None:
        """Wait until something holds; DemoError with the complaint if it takes too long."""
        deadline = time.monotonic() + limit_s
        self.check()
        while not until():
            if time.monotonic() > deadline:
                raise DemoError(f"after {limit_s:.0f} s {complaint()}")
            time.sleep(every_s)
            self.check()

    def wait_for_signal(self) -> None:
        """Wait for a signal, which ends only this; DemoError if a part has ended before."""
        try:
            while True:
                self.check()
                time.sleep(POLL_S)
        except Interrupted:
            self.signal = None


def tail(log: Path) -> str:
    """The last lines of a log."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        return f"(cannot be read: {error})"
    return "\n".join(lines[-LOG_LINES:]) or "(nothing)"
