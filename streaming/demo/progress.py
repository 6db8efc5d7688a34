"""Shows progress on stderr: bars and spinners on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class ProgressSteps:
    """The steps of a demonstration, and how long each took."""

    def __init__(self) -> None:
        console = Console(file=sys.stderr)
        self.seconds: dict[str, float] = {}
        self._bars = Progress(
            SpinnerColumn(finished_text="*"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}"),
            console=console,
            transient=True,  # the result is to have the whole screen
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    @contextmanager
    def step(self, name: str, total: float | None = None) -> Iterator["ProgressStep"]:
        """One step; `total` None: its duration is unknown."""
        began_s = time.monotonic()
        step = ProgressStep(self._bars, self._bars.add_task(name, total=total, detail=""))
        if self._bars.disable:
            _line(f"{name} ...")
        try:
            yield step
        except BaseException:
            self._bars.stop_task(step.task)
            raise
        self.seconds[name] = round(time.monotonic() - began_s, 1)
        self._bars.update(step.task, total=1, completed=1)
        if self._bars.disable:
            _line(f"{name}: {self.seconds[name]} s{f' ({step.detail})' if step.detail else ''}")


class ProgressStep:
    """A step in progress."""

    def __init__(self, bars: Progress, task: TaskID) -> None:
        self.task = task
        self.detail = ""
        self._bars = bars

    def show(self, detail: str, completed: float | None = None) -> None:
        """Show its progress."""
        self.detail = detail
        self._bars.update(self.task, detail=detail, completed=completed)


def _line(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
