"""Keeps an eye on everything that runs: one place to wait, to be interrupted, and to fail.

A signal only leaves a note, so nothing is cut off in the middle of starting a process; whoever
waits reads the note. A second signal asks for haste.
"""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Protocol, Self

from streaming.core.model.errors import HubError

POLL_S = 0.1
LOG_LINES = 20
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class DemoError(HubError):
    """The demonstration did not come to its end; the text says which part failed and how."""


class Interrupted(Exception):  # noqa: N818 no error
    """Somebody asked for the end."""


class Watched(Protocol):
    """Something that has to run until it is told to end."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def log(self) -> Path:
        """Where it writes what it does."""

    def runs(self) -> bool:
        """Claim that it has not ended."""


class Watch:
    """The signals that came, and the parts that must be running."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.in_haste = False
        self.parts: list[Watched] = []
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.in_haste = self.signal is not None
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


def tail(log: Path) -> str:
    """The last lines of a log."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError as error:
        return f"(cannot be read: {error})"
    return "\n".join(lines[-LOG_LINES:]) or "(nothing)"
