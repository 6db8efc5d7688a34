"""An agent as a process, whatever its database: settings, signals, log and exit code."""

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from connectors.agent.contract import ReplicaStore
from connectors.agent.loop import run
from connectors.agent.settings import AgentSettings, parse
from connectors.failure import tell_failure
from connectors.logs import configure_logs
from streaming.core.model.edited_text import edited_text
from streaming.core.model.errors import HubError
from streaming.core.model.secret_names import secrets_of

OpenStore = Callable[[AgentSettings], AbstractContextManager[ReplicaStore]]
"""Open a replica's database and lock out other agents; HubError if that fails."""


def run_file(source: str, open_store: OpenStore) -> int:
    """Run the agent whose settings this file holds (-: standard input); its exit code."""
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        settings = parse(edited_text(data, "the standard input" if source == "-" else source))
    except (HubError, OSError) as error:
        tell_failure("agent", str(error))
        return 1
    return run_process(settings, open_store)


def run_process(settings: AgentSettings, open_store: OpenStore) -> int:
    """Run the agent until SIGTERM or SIGINT; its exit code, 1 with the reason if it failed."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    token = settings.metrics_access.token
    secrets = secrets_of(settings.options, {"token": token} if token else {})
    configure_logs(
        settings.log_format,
        settings.log_level,
        settings.replica,
        lambda: {"replica": settings.replica},
        secrets,
    )
    try:
        with open_store(settings) as store:
            run(settings, store, stop)
    except (HubError, OSError) as error:
        tell_failure("agent", str(error))
        return 1
    return 0
