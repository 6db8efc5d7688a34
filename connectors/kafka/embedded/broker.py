"""An embedded Kafka broker: one process on loopback, its data in one folder.

For the demo, tests and `slackwater services`; it is not a cluster and has no replicas.
"""

import base64
import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Self

from connectors.jars import KAFKA, cached
from streaming.core.model.errors import HubError
from streaming.jvm.java import java_command, java_environment, run_java

HOST = "127.0.0.1"
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 30
_PORTS = range(20_000, 32_000)  # below the ports that systems give to outgoing connections
_READY = "Kafka Server started"
_LOG4J = Path(__file__).with_name("broker_log4j2.properties")
_JVM = (
    "-Xms128m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # starts in two thirds of the time, and moves bytes as fast
    "-XX:+ExitOnOutOfMemoryError",
)
_SETTINGS = """\
process.roles=broker,controller
node.id=1
listeners={clients},{controller}://{voter}
advertised.listeners={clients}
controller.listener.names={controller}
controller.quorum.voters=1@{voter}
log.dirs={data}

# a topic exists because it was created with the right settings
auto.create.topics.enable=false
# nothing disappears by age or size
log.retention.ms=-1
log.retention.bytes=-1

# one node
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0

# after a crash the new process waits until the old one's session is over
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000

# a small machine
num.network.threads=2
num.io.threads=2
background.threads=2
num.recovery.threads.per.data.dir=1
log.cleaner.dedupe.buffer.size=8388608
"""

_NOTHING: Mapping[str, str] = MappingProxyType({})

OPEN = ("PLAINTEXT",)
"""The listeners of a broker that everybody may use; the controller's is added."""
_CONTROLLER = "CONTROLLER"


class BrokerError(HubError):
    """The embedded broker did not start; the text ends with the tail of its log."""


class Broker:
    """A running broker; as a context manager it is stopped at the end."""

    def __init__(self, folder: Path, process: "subprocess.Popen[bytes] | int") -> None:
        self._folder = folder
        self._process = process

    @classmethod
    def start(
        cls,
        folder: Path,
        port: int | None = None,
        settings: Mapping[str, str] = _NOTHING,
        listeners: Sequence[str] = OPEN,
        passwords: Mapping[str, str] = _NOTHING,
    ) -> "Broker":
        """Start the broker of the folder and wait until it serves; BrokerError if it does not.

        A new folder is formatted and gets a free port unless `port` names one. The same folder
        started again has its old data and port. If it runs already, that one is returned.
        `settings`: more of Kafka's own. `listeners`: the one for clients first. `passwords`: by
        user, those with which a new folder is made.
        """
        folder = folder.resolve()
        check_listeners(folder, listeners)
        running = cls.running(folder)
        if running:
            return running
        folder.mkdir(parents=True, exist_ok=True)
        _configure(folder, port, settings, listeners)
        _format(folder, passwords)
        with _log(folder).open("ab") as log:
            read_from = log.tell()
            process = subprocess.Popen(
                java_command(*_class_path(), *_JVM, "kafka.Kafka", _settings(folder)),
                env=java_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C in the terminal is not for the broker
            )
        broker = cls(folder, process)
        try:
            (folder / "broker.pid").write_text(str(process.pid), encoding="utf-8")
            broker._wait_until_ready(read_from)
        except BaseException:
            broker.kill()
            raise
        return broker

    @classmethod
    def running(cls, folder: Path) -> "Broker | None":
        """The broker that runs in the folder, whoever started it."""
        folder = folder.resolve()
        try:
            pid = int((folder / "broker.pid").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        ours = str(_settings(folder)) in _command_line(pid)
        return cls(folder, pid) if ours else None

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, as host:port."""
        return f"{HOST}:{self.port_of(next(iter(_remembered_ports(self._folder))))}"

    def port_of(self, listener: str) -> int:
        """The port of a listener."""
        return _remembered_ports(self._folder)[listener]

    @property
    def pid(self) -> int:
        """The process."""
        return self._process if isinstance(self._process, int) else self._process.pid

    def stop(self) -> None:
        """Stop the process with SIGTERM, or with SIGKILL if that takes too long."""
        self._signal(signal.SIGTERM)
        if not self._wait_for_end(STOP_TIMEOUT_S):
            self._signal(signal.SIGKILL)
            self._wait_for_end(STOP_TIMEOUT_S)
        (self._folder / "broker.pid").unlink(missing_ok=True)

    def kill(self) -> None:
        """Kill the process at once, as a crash would; its data stays."""
        self._signal(signal.SIGKILL)
        self._wait_for_end(STOP_TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _signal(self, number: signal.Signals) -> None:
        if self._runs():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def _runs(self) -> bool:
        if isinstance(self._process, int):
            return bool(_command_line(self._process))
        return self._process.poll() is None

    def _wait_for_end(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._runs():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def _wait_until_ready(self, read_from: int) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while _READY not in _text_from(_log(self._folder), read_from):
            if not self._runs():
                raise BrokerError(_failure_text("ended while it started", self._folder, read_from))
            if time.monotonic() > deadline:
                what = f"is not ready after {START_TIMEOUT_S} s"
                raise BrokerError(_failure_text(what, self._folder, read_from))
            time.sleep(0.05)


def check_listeners(folder: Path, listeners: Sequence[str]) -> bool:
    """Return whether the folder has such a broker already.

    BrokerError: it has an open one where a closed one is wanted, or the reverse.
    """
    if not _settings(folder).exists():
        return False
    had = [name for name in _remembered_ports(folder) if name != _CONTROLLER]
    if had == [*listeners]:
        return True
    if had == [*OPEN]:
        raise BrokerError(
            f"{folder} is of an open broker, which everybody could write to: give the closed one"
            " a folder of its own, or leave --secure out"
        )
    raise BrokerError(
        f"{folder} is of a closed broker: start it with --secure, or give the open one a folder of"
        " its own"
    )


def _configure(
    folder: Path, port: int | None, settings: Mapping[str, str], listeners: Sequence[str]
) -> None:
    """Write the settings, with the folder's earlier ports or with free ones."""
    ports = _remembered_ports(folder) if _settings(folder).exists() else {}
    if port:
        ports[listeners[0]] = port
    for name in (*listeners, _CONTROLLER):
        ports.setdefault(name, _free_port(other_than=ports.values()))
    text = _SETTINGS.format(
        clients=",".join(f"{name}://{HOST}:{ports[name]}" for name in listeners),
        controller=_CONTROLLER,
        voter=f"{HOST}:{ports[_CONTROLLER]}",
        data=folder / "data",
    )
    text += "".join(f"{name}={value}\n" for name, value in settings.items())
    for one in ports.values():
        if not _is_free(one):
            raise BrokerError(
                f"port {one} is in use: end what listens there, or name another port with --port"
            )
    fresh = _settings(folder).with_suffix(".new")
    fresh.touch(mode=0o600)  # it may hold the password of a key
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(_settings(folder))


def _format(folder: Path, passwords: Mapping[str, str]) -> None:
    """Format the data folder for KRaft with a new cluster id, unless it is formatted.

    Its arguments are in a file, for a command line with passwords is everybody's to read.
    """
    if (folder / "data" / "meta.properties").exists():
        return
    shutil.rmtree(folder / "data", ignore_errors=True)  # of a format that did not end
    cluster = base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
    arguments = ["--cluster-id", cluster, "--config", str(_settings(folder))]
    for user, password in passwords.items():
        arguments += ["--add-scram", f'SCRAM-SHA-512=[name="{user}",password="{password}"]']
    file = folder / "format.new"
    file.touch(mode=0o600)
    file.write_text("\n".join(arguments), encoding="utf-8")
    tool = ("kafka.tools.StorageTool", "format", f"@{file}")
    done = run_java(*_class_path(), "-XX:TieredStopAtLevel=1", *tool)
    file.unlink()
    if done.returncode:
        tail = (done.stdout + done.stderr).strip()[-2000:]
        raise BrokerError(f"the broker's folder {folder} could not be formatted:\n{tail}")


def _class_path() -> tuple[str, str, str]:
    """The options by which Java finds the broker, and how it logs."""
    jars = os.pathsep.join(str(jar) for jar in cached(KAFKA))
    return "-cp", jars, f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"


def _settings(folder: Path) -> Path:
    return folder / "server.properties"


def _log(folder: Path) -> Path:
    return folder / "broker.log"


def _remembered_ports(folder: Path) -> dict[str, int]:
    """Listener -> its port, as the folder's settings have them, the controller's last."""
    text = _settings(folder).read_text(encoding="utf-8")
    line = re.search(r"^listeners=(.*)$", text, re.MULTILINE)
    found = re.findall(r"(\w+)://[\d.]+:(\d+)", line[1]) if line else []
    if not found:
        raise BrokerError(f"{_settings(folder)} has no ports: delete it to get new ones")
    return {name: int(port) for name, port in found}


def _free_port(other_than: Collection[int] = ()) -> int:
    """A port on which no process listens.

    Not one of the system's own choice: when the broker is down, a client that keeps trying such
    a port may be given it as its own end, connect to itself, and keep the broker from coming back.
    """
    candidates = random.sample(_PORTS, 200)
    for port in candidates:
        if port not in other_than and _is_free(port):
            return port
    raise BrokerError(f"no free port between {_PORTS.start} and {_PORTS.stop}: name one")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the broker does
        with contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return True
    return False


def _command_line(pid: int) -> str:
    """The process's command line; empty if there is no such process, or it is a zombie."""
    proc = Path("/proc")
    try:
        if proc.joinpath("self").exists():
            return (
                proc.joinpath(str(pid), "cmdline")
                .read_text(encoding="utf-8", errors="replace")
                .replace("\0", " ")
            )
    except OSError:
        return ""
    done = subprocess.run(
        ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    return done.stdout


def _text_from(path: Path, position: int) -> str:
    with path.open("rb") as file:
        file.seek(position)
        return file.read().decode(errors="replace")


def _failure_text(what: str, folder: Path, read_from: int) -> str:
    tail = "\n".join(_text_from(_log(folder), read_from).splitlines()[-20:])
    return f"the broker of {folder} {what}; {_log(folder)} ends with:\n{tail}"
