"""A database that is busy at the start is waited for, and a stopped agent waits no longer."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from connectors.agent.contract import ReplicaStore, StoreBusyError
from connectors.agent.process import run_process
from connectors.agent.settings import AgentSettings, DatabaseAddress
from connectors.kafka.options import LiveOptions
from connectors.live_value import LiveAccess
from streaming.core.access.port_access import EVERYBODY
from streaming.core.model.errors import StateError

SETTINGS = AgentSettings(
    DatabaseAddress("sqlite", "a.db"), "a", 1, "localhost:1", "changes.a", None, ()
)


def test_a_busy_database_is_tried_again() -> None:
    """The server holds what a killed agent had until it notices."""
    tries = list[int]()

    @contextmanager
    def opened(_: AgentSettings) -> Iterator[ReplicaStore]:
        tries.append(1)
        if len(tries) < 2:
            raise StoreBusyError("somebody has it")
        raise StateError("this time it is another reason")
        yield

    code = run_process(SETTINGS, LiveOptions({}), LiveAccess(EVERYBODY), opened)

    assert (code, len(tries)) == (1, 2)


def test_a_signal_ends_the_wait() -> None:
    """An agent that is told to stop has nothing to lose yet."""

    @contextmanager
    def opened(_: AgentSettings) -> Iterator[ReplicaStore]:
        os.kill(os.getpid(), signal.SIGTERM)
        raise StoreBusyError("somebody has it")
        yield

    assert run_process(SETTINGS, LiveOptions({}), LiveAccess(EVERYBODY), opened) == 0
