"""A new replica that `slackwater init` fills, beside what its database alone can insert."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from checkpoints.reading.reader import open_state
from streaming.cli.command import append_command
from streaming.core.model.command import CommandName, ResyncOrder
from tests.benchmarks.absence import is_back
from tests.benchmarks.counting import WrongCountError
from tests.benchmarks.environment import (
    BenchmarkEnvironment,
    HubKind,
    HubProbe,
    running,
    wait,
    watching,
)
from tests.benchmarks.growth import Past, generate
from tests.benchmarks.load import TABLE, WRITERS
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

NEW = "reader0"
CREATE = (
    f"CREATE TABLE {TABLE.name} (id INTEGER PRIMARY KEY, owner TEXT, balance NUMERIC(20, 2),"
    " sent_ms INTEGER)"
)
TRANSACTION = 10_000
"""Rows of a transaction of the database alone: a page of a copy has as many."""


def initial_load(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """A hub whose rows are generated directly, and a SQLite agent as a process of its own."""
    past = Past("initial_load", sizes.initial_rows, 1_000)
    config, probe = environment.config(HubKind(past.name, replicas=len(WRITERS) + 1)), HubProbe()
    generate(environment, config, past)
    order = ResyncOrder(NEW, is_full=True).text()
    append_command(open_state(config.hub.state), CommandName.RESYNC, order)
    filled, plain = (environment.folder / f"{past.name}.{name}.db" for name in ("new", "plain"))
    _create(filled)
    with watching(environment) as memory, running(environment, config, probe) as service:
        started_s = time.time()
        agent = subprocess.Popen(_command(environment.folder / f"{past.name}.toml", filled))
        try:
            wait(lambda: is_back(service.hub.state, NEW), "the new replica is filled", probe)
            seconds = time.time() - started_s
        finally:
            agent.terminate()
            agent.wait(120)
    _create(plain)
    plain_s = _copy(filled, plain)
    count = _count(plain)
    if count != past.rows:
        raise WrongCountError(f"{NEW} has {count} rows of {past.rows}")
    return {
        "initial_load": {
            "rows": count,
            "rows_per_s": round(count / seconds),
            "plain_rows_per_s": round(count / plain_s),
            "ratio_to_plain": round(plain_s / seconds, 3),
            "seconds": round(seconds, 1),
            "peak_mib": memory.peak_mib,
        }
    }


def _command(config: Path, database: Path) -> list[str]:
    names = ["--config", str(config), "--replica", NEW, "--database", str(database)]
    return [sys.executable, "-m", "streaming.cli.main", "agent", *names]


def _create(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(CREATE)


def _copy(source: Path, target: Path) -> float:
    """Insert the rows of one database into another that nothing captures; the seconds."""
    insert = f"INSERT INTO {TABLE.name} VALUES (?, ?, ?, ?)"
    with closing(sqlite3.connect(source)) as reader, closing(sqlite3.connect(target)) as writer:
        cursor, taken_s = reader.execute(f"SELECT * FROM {TABLE.name}"), 0.0
        while rows := cursor.fetchmany(TRANSACTION):
            started_s = time.perf_counter()
            with writer:
                writer.executemany(insert, rows)
            taken_s += time.perf_counter() - started_s
    return taken_s


def _count(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        (count,) = connection.execute(f"SELECT count(*) FROM {TABLE.name}").fetchone()
    return int(count)
