"""What a comparison costs: equal rows in SQLite and in PostgreSQL, and a few that differ."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg

from connectors.postgres.compare.rows import compared as in_server
from connectors.postgres.connection import agent_conninfo
from connectors.sqlite.compared import compared as in_file
from streaming.compare.run import Waiting, compared_tables
from streaming.core.compare.side import ComparedTable, OpenTable
from streaming.core.model.table import ColumnType, Table
from streaming.core.tracking.ranges import KeyRange
from tests.benchmarks.counting import WrongCountError
from tests.benchmarks.environment import BenchmarkEnvironment
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import Round, middle
from tests.benchmarks.sizes import Sizes
from tests.connectors.postgres.scratch_server import running_server

TABLE = Table(
    "account",
    ("id",),
    {
        "id": ColumnType.INT64,
        "owner": ColumnType.TEXT,
        "balance": ColumnType.DECIMAL,
        "active": ColumnType.BOOL,
        "changed": ColumnType.TIMESTAMP,
    },
)
DIFFERING = 10
"""How many rows differ in the second comparison, spread over all keys."""

_FILE = (
    "CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT, balance TEXT, active INT,"
    " changed TEXT)"
)
_SERVER = (
    "CREATE TABLE account (id bigint PRIMARY KEY, owner text, balance numeric(12,2),"
    " active boolean, changed timestamptz)"
)


def compare(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """Rows a second inside each database, and seconds of whole comparisons, in alternation."""
    rows, rounds = sizes.compared_rows, list[Round]()
    file = environment.folder / "compared.db"
    _fill_file(file, rows)
    with running_server() as server:
        dsn = f"{server} dbname=postgres"
        _fill_server(dsn, rows)
        with in_file(str(file), None) as first, in_server(dsn) as second:
            for _ in range(sizes.rounds + 1):
                rounds.append(_round(first, second, rows))
            del rounds[0]
        with in_file(str(file), None) as first, in_server(dsn) as second:
            _edit(dsn, rows)
            differing_s = _seconds(lambda: _compare(first, second, DIFFERING))
    return {
        "compare": {
            "rows": rows,
            **{f"{side}_per_s": round(middle(rounds, side)) for side in ("sqlite", "postgres")},
            "seconds": round(middle(rounds, "seconds"), 1),
            "seconds_with_10_differing": round(differing_s, 1),
            "rounds": rounds,
        }
    }


def _round(first: OpenTable, second: OpenTable, rows: int) -> Round:
    return {
        "sqlite": rows / _seconds(lambda: _digest(first(TABLE), rows)),
        "postgres": rows / _seconds(lambda: _digest(second(TABLE), rows)),
        "seconds": _seconds(lambda: _compare(first, second, 0)),
    }


def _seconds(work: Callable[[], None]) -> float:
    started_s = time.perf_counter()
    work()
    return time.perf_counter() - started_s


def _digest(side: ComparedTable, rows: int) -> None:
    (found,) = side.digests(KeyRange(TABLE.name), ())
    if found.count != rows:
        raise WrongCountError(f"{found.count} rows of {rows}")


def _compare(first: OpenTable, second: OpenTable, differing: int) -> None:
    waiting = Waiting(0, time.sleep, time.monotonic)
    (found,) = compared_tables([TABLE], first, second, waiting)
    if len(found.differing) != differing:
        raise WrongCountError(f"{len(found.differing)} rows differ, not {differing}")


def _fill_file(file: Path, rows: int) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as client:
        client.execute(_FILE)
        client.execute("BEGIN")
        client.executemany(
            "INSERT INTO account VALUES (?, ?, ?, ?, ?)",
            (
                (n, f"owner {n}", f"{n}.50", n % 2, "2024-02-29T23:59:59.000001Z")
                for n in range(rows)
            ),
        )
        client.execute("COMMIT")


def _fill_server(dsn: str, rows: int) -> None:
    with psycopg.connect(agent_conninfo(dsn), autocommit=True) as session:
        session.execute(_SERVER.encode())
        session.execute(
            "INSERT INTO account SELECT n, 'owner ' || n, n + 0.5, n %% 2 = 1,"
            " '2024-02-29 23:59:59.000001Z' FROM generate_series(0, %s::int - 1) n",
            (rows,),
        )
        session.execute("VACUUM ANALYZE account")


def _edit(dsn: str, rows: int) -> None:
    with psycopg.connect(agent_conninfo(dsn), autocommit=True) as session:
        step = rows // DIFFERING
        session.execute("UPDATE account SET balance = 0 WHERE id %% %s = 7", (step,))
