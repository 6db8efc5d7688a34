"""The processes of a demonstration, each in a session of its own, ended one after the other.

Only the demonstration receives a Ctrl-C in the terminal; it ends its parts in order. Its programs
are started as a user would start them; on a closed broker each has a login of its own, and the
hub's is the demonstration's own too.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connectors.kafka.embedded.broker import Broker
from streaming.config.rights import HUB, Role, RoleOf, user_of
from streaming.config.sources.secret_files import FOLDER_VARIABLE
from streaming.demo.folder import DemoFolder, place_of
from streaming.demo.monitor import DemoError, PartMonitor

END_S = 120.0
"""How long a part may take to end in order before it is ended by force."""
END_INTERRUPTED_S = 10.0
"""The same, after a Ctrl-C."""


@dataclass(slots=True)
class ProcessPart:
    """A child process, its log, and its monitor."""

    name: str
    log: Path
    monitor: PartMonitor
    process: "subprocess.Popen[bytes]"
    ends_by: signal.Signals = signal.SIGTERM
    has_ended: bool = False

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str],
        log: Path,
        monitor: PartMonitor,
        environment: Mapping[str, str],
        *,
        user: str | None = None,
        within: Path | None = None,
        ends_by: signal.Signals = signal.SIGTERM,
    ) -> "ProcessPart":
        """Start it; from now on its end is a failure, until it is stopped.

        `user`: who runs it. `within`: the folder in which it runs.
        """
        with log.open("ab") as out:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=within,
                user=user,
                group=user,
                extra_groups=None if user is None else (),
            )
        part = cls(name, log, monitor, process, ends_by)
        monitor.parts.append(part)
        return part

    def runs(self) -> bool:
        """Return whether it has not ended."""
        return self.process.poll() is None

    def request_end(self) -> None:
        """Send it its signal once; it ends its own children.

        A second signal could reach an interpreter that has removed its handlers.
        """
        if self not in self.monitor.parts:
            return
        self.monitor.parts.remove(self)
        if self.runs():
            self.process.send_signal(self.ends_by)

    def end(self) -> None:
        """Request its end, wait, and kill what is left of its session; idempotent."""
        if self.has_ended:
            return
        self.request_end()
        since_s = time.monotonic()
        while self.runs() and not self._is_overdue(time.monotonic() - since_s):
            time.sleep(0.05)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.has_ended = True

    def kill(self) -> None:
        """Kill its session at once, as a machine that is lost does."""
        self.monitor.parts.remove(self)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.has_ended = True

    def _is_overdue(self, waited_s: float) -> bool:
        interrupted = self.monitor.signal is not None
        limit_s = END_INTERRUPTED_S if interrupted else END_S
        return waited_s > limit_s or self.monitor.is_forced


def end_all(parts: Sequence[ProcessPart]) -> None:
    """End several parts at the same time."""
    for part in parts:
        part.request_end()
    for part in parts:
        part.end()


@dataclass(slots=True)
class BrokerPart:
    """The broker; it starts in a thread, so that a signal is received meanwhile."""

    folder: Path
    monitor: PartMonitor
    starting: Callable[[Path], Broker]
    """`Broker.start`, or that of a closed one"""
    name: str = "the broker"
    started: Future[Broker] = field(init=False)

    def __post_init__(self) -> None:
        self.started = ThreadPoolExecutor(1).submit(self.starting, self.folder)

    @property
    def log(self) -> Path:
        """The broker's log."""
        return self.folder / "broker.log"

    def runs(self) -> bool:
        """Return whether it has not ended."""
        return Broker.running(self.folder) is not None

    def is_ready(self) -> bool:
        """Return whether it serves; raises its error if it did not start."""
        if not self.started.done():
            return False
        self.started.result()
        if self not in self.monitor.parts:
            self.monitor.parts.append(self)
        return True

    def end(self) -> None:
        """Stop it, or kill it if it is still starting or a second signal came."""
        if self in self.monitor.parts:
            self.monitor.parts.remove(self)
        while not self.started.done():
            self._kill()
            wait([self.started], 0.1)
        if self.monitor.is_forced:
            self._kill()
        elif self.started.exception() is None:
            self.started.result().stop()

    def _kill(self) -> None:
        running = Broker.running(self.folder)
        if running is not None:
            running.kill()


def start_hub(folder: DemoFolder, monitor: PartMonitor) -> ProcessPart:
    """Start the hub."""
    command, log = _slackwater("run", folder), folder.log("hub")
    return ProcessPart.start("the hub", command, log, monitor, _environment(folder, user_of(HUB)))


def start_agent(folder: DemoFolder, replica: str, monitor: PartMonitor) -> ProcessPart:
    """Start a replica's agent."""
    command = _slackwater("agent", folder, "--replica", replica)
    command += ["--database", place_of(folder, replica)]
    packets = folder.packets(replica)
    if packets.exists():
        command += ["--packets", str(packets), "--every", "1"]
    log = folder.log(f"agent-{replica}")
    environment = _environment(folder, user_of(RoleOf(Role.AGENT, replica)))
    return ProcessPart.start(f"the agent of {replica}", command, log, monitor, environment)


def retire(folder: DemoFolder, replica: str) -> None:
    """Take a replica out for good, and keep what the command says; DemoError if it fails."""
    said = _ordered(folder, "retire", replica, "--yes", "--json")
    folder.retirement.write_text(said, encoding="utf-8")


def send_again(folder: DemoFolder, replica: str) -> Any:  # noqa: ANN401  # a JSON document
    """Lower the replica's row to its own word; what the command says. DemoError if it fails."""
    return json.loads(_ordered(folder, "chepoch", replica, "--actual", "--force", "--json"))


def _ordered(folder: DemoFolder, command: str, *arguments: str) -> str:
    """What a command of an operator says."""
    done = subprocess.run(
        _slackwater(command, folder, *arguments),
        env=_environment(folder, user_of(HUB)),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise DemoError(f"slackwater {command} {' '.join(arguments)} failed: {done.stderr}")
    return done.stdout


def _environment(folder: DemoFolder, user: str) -> dict[str, str]:
    """The environment of a program, which logs in as this user where the broker asks for it."""
    login = folder.login(user)
    own = {FOLDER_VARIABLE: str(login)} if login.exists() else {}
    return {**os.environ, **own}  # noqa: TID251  # what it has else is inherited


def _slackwater(command: str, folder: DemoFolder, *arguments: str) -> list[str]:
    program = [sys.executable, "-m", "streaming.cli.main"]
    return [*program, command, "--config", str(folder.config), *arguments]
