"""Real agents of SQLite files in a site's folder, and clients that know nothing of them."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from tests.harness.hub_process import TIMEOUT_S, wait_until
from tests.harness.site import Site

CREATE = "CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY, v TEXT)"


def database(at: Site, name: str) -> Path:
    """A replica's file."""
    return at.folder / f"{name}.db"


def create(at: Site, name: str, statement: str = CREATE) -> None:
    """A new file with its table."""
    with closing(sqlite3.connect(database(at, name))) as client:
        client.execute(statement)


def execute(at: Site, name: str, statement: str, *values: str) -> None:
    """Run a statement as any client would."""
    with closing(sqlite3.connect(database(at, name), timeout=60)) as client, client:
        client.execute(statement, values)


def execute_uncaptured(at: Site, name: str, *statements: str) -> None:
    """Run statements while no trigger is there, as a tool does that knows no triggers."""
    with closing(sqlite3.connect(database(at, name), timeout=60, isolation_level=None)) as client:
        client.execute("BEGIN IMMEDIATE")
        found = client.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        triggers = found.fetchall()
        for trigger, _ in triggers:
            client.execute(f'DROP TRIGGER "{trigger}"')
        for statement in statements:
            client.execute(statement)
        for _, create_trigger in triggers:
            client.execute(create_trigger)
        client.execute("COMMIT")


def rows(at: Site, name: str) -> dict[str, str]:
    """What a file holds."""
    with closing(sqlite3.connect(database(at, name), timeout=60)) as client:
        return dict(client.execute("SELECT k, v FROM t"))


def agent(
    at: Site, name: str, file: Path | str | None = None, *arguments: str
) -> "subprocess.Popen[str]":
    """Start a replica's agent; `file`: on another one than its own."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "streaming.cli.main", "agent", "--config", str(at.file)),
            *("--replica", name, "--database", str(file or database(at, name))),
            *arguments,
        ],
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def at_work(at: Site, name: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    """An agent that is killed with the block, if it is not yet."""
    one = agent(at, name, None, *arguments)
    try:
        yield one
    finally:
        kill(one)


def kill(one: "subprocess.Popen[str]") -> None:
    """Kill an agent, as the machine does that has no memory left."""
    one.kill()
    one.wait()
    if one.stderr is not None:
        one.stderr.close()


def captures(at: Site, name: str) -> bool:
    """Whether what is written to a file is captured."""
    trigger = "SELECT 1 FROM sqlite_schema WHERE name = '_slackwater_after_insert_t'"
    with closing(sqlite3.connect(database(at, name), timeout=60)) as client:
        return client.execute(trigger).fetchone() is not None


@contextmanager
def agents(at: Site, names: str, *arguments: str) -> Iterator[None]:
    """Agents at work; they end in order with the block."""
    with in_order(
        {name: agent(at, name, None, *arguments) for name in names}, partial(captures, at)
    ):
        yield


@contextmanager
def in_order(
    started: "Mapping[str, subprocess.Popen[str]]", captures_of: Callable[[str], bool]
) -> Iterator[None]:
    """These agents at work, once what is written is captured; they end in order with the block."""
    try:
        for name, one in started.items():
            wait_until(lambda: captures_of(name) or one.poll() is not None, lambda: name)  # noqa: B023
        yield
    finally:
        for one in started.values():
            one.terminate()
        ended = [one.communicate(timeout=TIMEOUT_S) for one in started.values()]
    assert [one.returncode for one in started.values()] == [0] * len(started), ended
