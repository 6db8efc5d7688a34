"""Real agents of replicas whose databases are of any kind, and clients that know nothing of them.

A replica is a SQLite file in the site's folder, or the PostgreSQL database whose address is there.
"""

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from connectors.postgres.names import local_origin, server_name
from tests.connectors.postgres.scratch_server import ScratchServer
from tests.harness import sqlite_agents
from tests.harness.hub_process import wait_until
from tests.harness.postgres_agents import PostgresSite
from tests.harness.site import Site
from tests.harness.sqlite_agents import CREATE, database, kill

IN_ONE = 500
"""How many rows a client writes in a transaction."""


def create(at: Site, name: str, *statements: str, server: str | None = None) -> None:
    """A new database with its tables; `server`: whose it is and is attached, None: a file."""
    first, *others = statements or (CREATE,)
    if server is None:
        sqlite_agents.create(at, name, first)
        for one in others:
            sqlite_agents.execute(at, name, one)
        return
    there = PostgresSite(server, f"{name}{at.prefix}".replace(".", ""))
    there.create(first)
    for one in others:
        there.execute(one)
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


def execute_uncaptured(at: Site, name: str, *statements: str) -> None:
    """Run statements of which the agent at work learns nothing, in one transaction.

    The table has no triggers meanwhile, or the publication no operations.
    """
    if not _is_server(at, name):
        sqlite_agents.execute_uncaptured(at, name, *statements)
        return
    publish = "ALTER PUBLICATION slackwater SET (publish = '{}')"
    every = publish.format("insert, update, delete, truncate")
    with psycopg.connect(place(at, name)) as client:
        for statement in (publish.format("truncate"), *statements, every):
            client.execute(statement.encode())


def execute_here(at: Site, name: str, *statements: str) -> None:
    """Run statements whose writes stay in the database, in one transaction."""
    if not _is_server(at, name):
        begin, end = (
            f"INSERT INTO _slackwater_local (op) VALUES ('{op}')" for op in ("begin", "end")
        )
        with closing(sqlite3.connect(database(at, name), timeout=60, isolation_level=None)) as file:
            for one in ("PRAGMA foreign_keys = ON", "BEGIN IMMEDIATE", begin, *statements, end):
                file.execute(one)
            file.execute("COMMIT")
        return
    with psycopg.connect(place(at, name)) as client:
        origin = local_origin(server_name(client.info.dbname, name))
        client.execute("SELECT pg_replication_origin_session_setup(%s)", (origin,))
        for one in statements:
            client.execute(one.encode())


def select(at: Site, name: str, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    if _is_server(at, name):
        with psycopg.connect(place(at, name)) as client:
            return client.execute(query.encode()).fetchall()
    with closing(sqlite3.connect(sqlite_agents.database(at, name), timeout=60)) as opened:
        return opened.execute(query).fetchall()


def rows(at: Site, name: str) -> dict[str, str]:
    """What the table holds."""
    return dict(select(at, name, "SELECT k, v FROM t"))


def own_table(at: Site, name: str, table: str) -> str:
    """The name of one of the agent's own tables."""
    return f"slackwater.{table}" if _is_server(at, name) else f"_slackwater_{table}"


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
def agents(at: Site, names: str, *arguments: str) -> Iterator[None]:
    """Agents at work; they end in order with the block."""
    started = {name: sqlite_agents.agent(at, name, place(at, name), *arguments) for name in names}
    with sqlite_agents.in_order(started, partial(captures, at)):
        yield


def lose(at: Site, name: str) -> None:
    """Delete a database with all that is in it, and make a new one with an empty table."""
    if not _is_server(at, name):
        for file in at.folder.glob(f"{name}.db*"):
            file.unlink()
        create(at, name)
        return
    server, _, there = place(at, name).rpartition("/")
    of_it = "FROM pg_replication_slots WHERE database = current_database()"
    wait_until(lambda: not select(at, name, f"SELECT 1 {of_it} AND active"), lambda: "it is free")
    select(at, name, f"SELECT pg_drop_replication_slot(slot_name) {of_it}")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as client:
        client.execute(f"DROP DATABASE {there} WITH (FORCE)".encode())
        client.execute(f"CREATE DATABASE {there}".encode())
    execute(at, name, CREATE)
    at.slackwater("attach", place(at, name), "--replica", name, "--yes")


def back_up(at: Site, name: str, server: ScratchServer | None) -> Path:
    """A backup of a database while its agent works, by the database's own means."""
    if server is not None:
        return server.backup("copy", "-c", "fast")
    with closing(sqlite3.connect(sqlite_agents.database(at, name))) as source:
        source.execute("VACUUM INTO ?", (str(at.folder / "copy"),))
    return at.folder / "copy"


def copy_files(at: Site, name: str, server: ScratchServer | None) -> Path:
    """A copy of the files of a database that nobody has open."""
    if server is None:
        return Path(shutil.copy(sqlite_agents.database(at, name), at.folder / "copy"))
    server.stop()
    made = server.copy("copy")
    server.start()
    return made


def put_back(at: Site, name: str, backup: Path, server: ScratchServer | None) -> None:
    """Put a backup in the place of a database."""
    if server is not None:
        server.stop()
        server.put_back(backup)
        server.start()
        return
    for file in at.folder.glob(f"{name}.db*"):
        file.unlink()
    shutil.copy(backup, sqlite_agents.database(at, name))


def _is_server(at: Site, name: str) -> bool:
    return _address(at, name).exists()


def _address(at: Site, name: str) -> Path:
    return at.folder / f"{name}.address"
