"""A database that is busy, or lost, is waited for, and a stopped agent waits no longer."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from connectors.agent import process
from connectors.agent.contract import ReplicaStore, StoreBusyError, StoreLostError
from connectors.agent.process import run_process
from connectors.agent.settings import AgentSettings, DatabaseAddress
from connectors.kafka.options import LiveOptions
from connectors.live_value import LiveAccess
from streaming.core.access.port_access import EVERYBODY
from streaming.core.model.errors import StateError
from tests.connectors.agent.test_loop import MemoryStore

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


def test_a_database_that_is_lost_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its server was started anew: the agent goes on with it, until it is told to stop."""
    tries = list[int]()
    monkeypatch.setattr(process, "AGAIN_S", 0.01)

    @contextmanager
    def opened(_: AgentSettings) -> Iterator[ReplicaStore]:
        tries.append(1)
        if len(tries) == 2:
            raise StoreLostError("the server starts")
        yield MemoryStore()

    def run(_: object, __: object, ___: object, stop: threading.Event) -> None:
        assert not stop.is_set()
        stop.set()
        if len(tries) < 4:
            raise StoreLostError("the server was stopped")

    monkeypatch.setattr(process, "run", run)
    with caplog.at_level(logging.WARNING):
        code = run_process(SETTINGS, LiveOptions({}), LiveAccess(EVERYBODY), opened)

    assert (code, len(tries)) == (0, 4)


def test_a_database_that_cannot_be_reached_at_the_start_ends_the_agent() -> None:
    """Its address may be wrong; whoever starts it reads why."""

    @contextmanager
    def opened(_: AgentSettings) -> Iterator[ReplicaStore]:
        raise StoreLostError("no such server")
        yield

    assert run_process(SETTINGS, LiveOptions({}), LiveAccess(EVERYBODY), opened) == 1


def test_a_signal_ends_the_wait_for_a_lost_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be away for hours."""

    @contextmanager
    def opened(_: AgentSettings) -> Iterator[ReplicaStore]:
        yield MemoryStore()

    def run(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        raise StoreLostError("the server was stopped")

    monkeypatch.setattr(process, "run", run)
    assert run_process(SETTINGS, LiveOptions({}), LiveAccess(EVERYBODY), opened) == 0
