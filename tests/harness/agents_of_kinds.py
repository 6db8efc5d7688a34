"""Real agents of replicas whose databases are of any kind, and clients that know nothing of them.

A replica is a SQLite file in the site's folder, or the PostgreSQL database whose address is there.
"""

import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import psycopg

from tests.harness import sqlite_agents
from tests.harness.postgres_agents import PostgresSite
from tests.harness.site import Site
from tests.harness.sqlite_agents import CREATE, database, kill

IN_ONE = 500
"""How many rows a client writes in a transaction."""


def create(at: Site, name: str, statement: str = CREATE, server: str | None = None) -> None:
    """A new database with its table; `server`: whose it is and is attached, None: a file."""
    if server is None:
        sqlite_agents.create(at, name, statement)
        return
    there = PostgresSite(server, name)
    there.create(statement)
    at.slackwater("attach", there.dsn, "--replica", name, "--yes")
    _address(at, name).write_text(there.dsn)


def place(at: Site, name: str) -> str:
    """What `--database` of the replica's agent names."""
    return _address(at, name).read_text() if _is_server(at, name) else str(database(at, name))


def execute(at: Site, name: str, statement: str, *values: str) -> None:
    """Run a statement as any client would."""
    if not _is_server(at, name):
        sqlite_agents.execute(at, name, statement, *values)
        return
    with psycopg.connect(place(at, name)) as client:
        client.execute(statement.replace("?", "%s").encode(), values)


def execute_each(at: Site, name: str, statement: str, values: Sequence[tuple[str, str]]) -> None:
    """Run a statement for each of these, some hundred in a transaction."""
    groups = (values[begin : begin + IN_ONE] for begin in range(0, len(values), IN_ONE))
    if not _is_server(at, name):
        with closing(sqlite3.connect(database(at, name), timeout=60)) as file:
            for some in groups:
                with file:
                    file.executemany(statement, some)
        return
    with psycopg.connect(place(at, name)) as client, client.cursor() as cursor:
        for some in groups:
            cursor.executemany(statement.replace("?", "%s").encode(), some)
            client.commit()


def rows(at: Site, name: str) -> dict[str, str]:
    """What the table holds."""
    if not _is_server(at, name):
        return sqlite_agents.rows(at, name)
    with psycopg.connect(place(at, name)) as client:
        return dict(client.execute("SELECT k, v FROM t").fetchall())


def captures(at: Site, name: str) -> bool:
    """Whether what is written is captured; by a database that is attached it is."""
    return _is_server(at, name) or sqlite_agents.captures(at, name)


@contextmanager
def at_work(at: Site, name: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    """An agent that is killed with the block, if it is not yet."""
    one = sqlite_agents.agent(at, name, place(at, name), *arguments)
    try:
        yield one
    finally:
        kill(one)


@contextmanager
def agents(at: Site, names: str) -> Iterator[None]:
    """Agents at work; they end in order with the block."""
    started = {name: sqlite_agents.agent(at, name, place(at, name)) for name in names}
    with sqlite_agents.in_order(started, partial(captures, at)):
        yield


def _is_server(at: Site, name: str) -> bool:
    return _address(at, name).exists()


def _address(at: Site, name: str) -> Path:
    return at.folder / f"{name}.address"
