"""An agent as a process, whatever its database: settings, signals, log and exit code."""

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from connectors.agent.access import KafkaAccess
from connectors.agent.contract import ReplicaStore, StoreBusyError, StoreLostError
from connectors.agent.loop import run
from connectors.agent.packet_fed import run_by_packets
from connectors.agent.settings import AgentSettings, parse
from connectors.kafka.options import LiveOptions
from connectors.live_value import LiveAccess
from connectors.log_format import write_failure
from connectors.logs import configure_logs
from connectors.trusted_file import check_trusted
from streaming.core.access.port_access import PortAccess
from streaming.core.access.secret_names import secrets_of
from streaming.core.model.errors import HubError
from streaming.core.text.edited_text import edited_text

OpenStore = Callable[[AgentSettings], AbstractContextManager[ReplicaStore]]
"""Open a replica's database and lock out other agents; HubError if that fails."""

BUSY_S = 90.0
"""How long a busy database is waited for: a server may hold what a dead agent had for a minute."""
AGAIN_S = 0.5
"""The pause between two attempts, also to reach a database whose connection is lost."""

log = logging.getLogger(__name__)


def run_arguments(program: str, arguments: list[str], open_store: OpenStore) -> int:
    """Run the agent whose settings the one argument names, as run_file; 2: it is not one."""
    if len(arguments) != 1:
        sys.stderr.write(f"usage: python -m {program} FILE (settings as JSON; -: stdin)\n")
        return 2
    return run_file(arguments[0], open_store)


def run_file(source: str, open_store: OpenStore) -> int:
    """Run the agent whose settings this file holds (-: standard input); its exit code."""
    try:
        settings = _read(source)
    except (HubError, OSError) as error:
        write_failure("agent", str(error))
        return 1
    if source == "-":
        live = LiveOptions(settings.options), LiveAccess(settings.metrics_access)
        return run_process(settings, *live, open_store)
    files = [Path(source)]
    options = LiveOptions(settings.options, lambda: _read(source).options, lambda: files)
    readers = LiveAccess(
        settings.metrics_access, lambda: _read(source).metrics_access.token, lambda: files
    )
    return run_process(settings, options, readers, open_store)


def _read(source: str) -> AgentSettings:
    if source == "-":
        return parse(edited_text(sys.stdin.buffer.read(), "the standard input"))
    file = Path(source)
    check_trusted(file)
    return parse(edited_text(file.read_bytes(), source))


def run_process(
    settings: AgentSettings, options: LiveOptions, readers: LiveAccess, open_store: OpenStore
) -> int:
    """Run the agent until SIGTERM or SIGINT; its exit code, 1 with the reason if it failed.

    `readers`: who may read its metrics now.
    """
    order = StopOrder()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: order.give())
    options.changed = lambda now: _write_log(settings, now, readers.latest)
    readers.changed = lambda now: _write_log(settings, options.latest, now)
    _write_log(settings, options.latest, readers.latest)
    try:
        _run_until_stopped(settings, options, readers, open_store, order)
    except (HubError, OSError) as error:
        write_failure("agent", str(error))
        return 1
    return 0


@dataclass(slots=True)
class StopOrder:
    """The order to stop; `run`: of one run of the loop, which sets it itself at its end."""

    asked: threading.Event = field(default_factory=threading.Event)
    run: threading.Event = field(default_factory=threading.Event)

    def give(self) -> None:
        """Stop the run, and begin no other one."""
        self.asked.set()
        self.run.set()

    def next_run(self) -> threading.Event:
        """The event of another run."""
        self.run = threading.Event()
        if self.asked.is_set():
            self.run.set()
        return self.run


def _run_until_stopped(
    settings: AgentSettings,
    options: LiveOptions,
    readers: LiveAccess,
    open_store: OpenStore,
    order: StopOrder,
) -> None:
    """Run on the open database, and on another connection to it whenever one is lost.

    HubError if it fails, or cannot be opened at the start.
    """
    lost_at_s: float | None = None
    has_run = False
    while True:
        try:
            with _opened(settings, open_store, order.asked) as store:
                if store is None:
                    return
                if lost_at_s is not None:
                    log.warning("the database is back after %.1f s", time.monotonic() - lost_at_s)
                lost_at_s, has_run = None, True
                stop = order.next_run()
                if settings.packets is None:
                    run(KafkaAccess(settings, options), readers, store, stop)
                else:
                    run_by_packets(settings, settings.packets, readers, store, stop)
                return
        except StoreLostError as error:
            if not has_run:
                raise
            if lost_at_s is None:
                log.warning("the agent waits for its database, and goes on with it: %s", error)
                lost_at_s = time.monotonic()
            if order.asked.wait(AGAIN_S):
                return


@contextmanager
def _opened(
    settings: AgentSettings, open_store: OpenStore, stop: threading.Event
) -> Iterator[ReplicaStore | None]:
    """The open store; None: the agent was stopped while the database was busy."""
    until_s, is_said = time.monotonic() + BUSY_S, False
    with ExitStack() as held:
        while not stop.is_set():
            try:
                store = held.enter_context(open_store(settings))
            except StoreBusyError as error:
                if time.monotonic() >= until_s:
                    raise
                if not is_said:
                    log.warning("%s; it is waited for, %.0f s at most", error, BUSY_S)
                is_said = True
                stop.wait(AGAIN_S)
            else:
                yield store
                return
        yield None


def _write_log(settings: AgentSettings, options: Mapping[str, str], readers: PortAccess) -> None:
    """Write the log as the settings say, without the secrets of these options, nor a token."""
    tokens = (settings.metrics_access.token, readers.token)
    configure_logs(
        settings.log_format,
        settings.log_level,
        settings.replica,
        lambda: {"replica": settings.replica},
        secrets_of(settings.options, options, *({"token": one or ""} for one in tokens)),
    )
