"""The real hub as a process of its own: started, awaited, killed, stopped and continued."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

TIMEOUT_S = 600
"""How long a hub may take for anything, on a machine that is busy with other things."""

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java's options for processes that live for seconds: half the time to compile and to clean up."""

KILLED = -signal.SIGKILL
"""The exit code of a process that was killed."""

_CHECKOUT = Path(__file__).parent.parent.parent
_POLL_S = 0.1


def wait_until(
    claim: Callable[[], bool], what: Callable[[], str], *, every_s: float = _POLL_S
) -> None:
    """Wait until the claim holds; AssertionError names what did not come true.

    Between two looks is twice the time that a look takes: the processor is for the others.
    """
    deadline = time.monotonic() + TIMEOUT_S
    began_s = time.monotonic()
    while not claim():
        assert time.monotonic() < deadline, f"not within {TIMEOUT_S} s: {what()}"
        time.sleep(max(every_s, 2 * (time.monotonic() - began_s)))
        began_s = time.monotonic()


class HubProcess:
    """`slackwater run` in a process group of its own; as a context manager it never outlives it."""

    def __init__(self, config: Path, *arguments: str, fault: str = "") -> None:
        """Start the hub of this configuration; `fault` as in checkpoints/commit/faults.py."""
        self._log = config.with_name("hub.log")
        self._from = self._log.stat().st_size if self._log.exists() else 0
        command = [sys.executable, "-m", "streaming.cli.entry", "run", "--config", str(config)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *arguments],
                cwd=_CHECKOUT,
                env={**os.environ, "SLACKWATER_FAULT": fault},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """What this process has written to its standard error so far."""
        with self._log.open("rb") as log:
            log.seek(self._from)
            return log.read().decode(errors="replace")

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def catches(self, number: signal.Signals) -> bool:
        """Whether it has a handler for a signal already."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (number - 1) & 1)

    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def ends(self) -> int:
        """Wait for its end and give the exit code; its JVM ends with it."""
        try:
            code = self._process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the hub does not end; its output:\n{self.output}") from None
        finally:
            self.kill()
        return code

    def ends_with(self, code: int) -> str:
        """Wait for its end, hold it against this exit code, and return its output."""
        found = self.ends()
        assert found == code, f"the hub ended with {found}, not {code}; its output:\n{self.output}"
        return self.output

    def is_stopped_after(self, what: str) -> None:
        """Wait until the process is stopped (SIGSTOP)."""
        stat = Path(f"/proc/{self._process.pid}/stat")
        self.waits_for(
            lambda: self.runs() and stat.read_text().rpartition(")")[2].split()[0] == "T",
            f"it stops after {what}",
        )

    def waits_for(self, claim: Callable[[], bool], what: str) -> None:
        """Wait while it runs until the claim holds; its end before that fails."""
        wait_until(
            lambda: claim() or not self.runs(), lambda: f"{what}; its output:\n{self.output}"
        )
        assert claim(), f"the hub ended before this: {what}; its output:\n{self.output}"

    def kill_java(self) -> None:
        """Kill its JVM alone."""
        java = self.java()
        assert java is not None
        os.kill(java, signal.SIGKILL)

    def java(self) -> int | None:
        """The process id of its JVM, which it started itself; None: it has none yet."""
        task = Path(f"/proc/{self._process.pid}/task/{self._process.pid}")
        children = [int(child) for child in (task / "children").read_text().split()]
        names = {child: Path(f"/proc/{child}/comm").read_text().strip() for child in children}
        return next((child for child, name in names.items() if name == "java"), None)

    def terminate(self) -> None:
        """Send it the signal to stop."""
        self._process.send_signal(signal.SIGTERM)

    def signal_group(self, number: signal.Signals) -> None:
        """Send its whole process group a signal, as a terminal (Ctrl-C) or systemd does."""
        os.killpg(self._process.pid, number)

    def go_on(self) -> None:
        """Let a stopped one go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it and its JVM, if they are there still."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
