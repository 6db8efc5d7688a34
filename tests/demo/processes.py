"""Finds every process that descends from one demonstration, by a mark in its environment."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.hub_process import wait_until

MARK = "DEMONSTRATION_UNDER_TEST"
LIMIT_S = 900
"""For a machine that does many other things."""


@dataclass(slots=True)
class Demonstration:
    """A `slackwater demo` in a session of its own, as a terminal would start it."""

    folder: Path
    scenario: str = "collisions"
    more: tuple[str, ...] = ()
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    process: "subprocess.Popen[str]" = field(init=False)

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "streaming.cli.main", "demo"),
                *("--seconds", "3", "--keep", str(self.folder), "--json"),
                *("--scenario", self.scenario, *self.more),
            ],
            env=os.environ | {MARK: self.mark, "SLACKWATER_KAFKA__BOOTSTRAP_SERVERS": "nobody:1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, while it runs."""
        wait_until(lambda: self.process.poll() is not None or holds(), lambda: "the demonstration")
        assert self.process.poll() is None, self.process.communicate()

    def ended(self) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        out, error = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out, error

    def interrupt(self) -> None:
        """What Ctrl-C in a terminal does: SIGINT to the whole group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def processes(self) -> dict[int, str]:
        """Process id -> command line of everything that it started, itself apart."""
        marked = f"{MARK}={self.mark}".encode()
        found = dict[int, str]()
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if marked in (place / "environ").read_bytes().split(b"\0"):
                    found[int(place.name)] = (place / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
        found.pop(self.process.pid, None)
        return {pid: command for pid, command in found.items() if command}

    def pid_of(self, part: str) -> int | None:
        """The process whose command line has this text."""
        return next((pid for pid, command in self.processes().items() if part in command), None)

    def clean_up(self) -> None:
        """End whatever is left, whether the test went well or not."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
