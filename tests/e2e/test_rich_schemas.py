"""Databases with what applications declare: functions, foreign keys, wide tables, large rows."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.e2e.test_refused_rows import is_level, wait_for_rows
from tests.e2e.test_written_and_uncarried import LONG, uncarried, wait_for_uncarried
from tests.harness import agents_of_kinds
from tests.harness.hub_process import wait_until
from tests.harness.own_functions import SCHEMA, register
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import CREATE, agents, create, database

WIDE = [f"c{n}" for n in range(350)]
TABLES = {
    "items": 'id = "int64", name = "text", price = "decimal"',
    "parent": 'id = "int64", name = "text"',
    "child": 'id = "int64", parent = "int64"',
    "wide": ", ".join(['id = "int64"', *(f'{name} = "text"' for name in WIDE)]),
}
"""Table -> its columns in the configuration; the key is `id`."""
MORE = (
    "CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT)",
    """CREATE TABLE child (id INTEGER PRIMARY KEY,
      parent INTEGER REFERENCES parent (id) ON UPDATE CASCADE ON DELETE CASCADE)""",
    f"CREATE TABLE wide (id INTEGER PRIMARY KEY, {', '.join(f'{name} TEXT' for name in WIDE)})",
)
LOAD = ("--load", "tests.harness.own_functions:register")


@contextmanager
def client(at: Site, name: str) -> Iterator[sqlite3.Connection]:
    """The application: it has its own functions, and lets SQLite keep references."""
    with closing(sqlite3.connect(database(at, name), timeout=60)) as connection:
        register(connection)
        connection.execute("PRAGMA foreign_keys = ON")
        with connection:
            yield connection


@pytest.fixture
def two(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas whose databases have all of this."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        configure(made, *TABLES)
        for name in "ab":
            create(made, name)
            with client(made, name) as opened:
                opened.executescript(";".join([SCHEMA, *MORE]))
        yield made


@pytest.fixture
def with_server(tmp_path: Path, broker: Broker, topic_prefix: str, postgres: str) -> Iterator[Site]:
    """A hub with two replicas, of which b is in a PostgreSQL server; they have no functions."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        configure(made, "parent", "child", "wide")
        agents_of_kinds.create(made, "a", CREATE, *MORE)
        there = [one.replace("INTEGER", "BIGINT") for one in MORE]
        agents_of_kinds.create(made, "b", CREATE, *there, server=postgres)
        yield made


def configure(at: Site, *names: str) -> None:
    """Add these tables to the configuration."""
    with at.file.open("a") as file:
        for name in names:
            columns = f'key = ["id"]\ncolumns = {{ {TABLES[name]} }}'
            file.write(f'[[tables]]\nname = "{name}"\n{columns}\n')


def held(at: Site, name: str, table: str) -> list[tuple[object, ...]]:
    """What a file holds in a table."""
    with client(at, name) as opened:
        return opened.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


@pytest.mark.more
def test_what_applications_declare_is_carried(two: Site, spark: SparkSession) -> None:
    """Functions do at a receiver what they do for the application; a cascade arrives as it was."""
    with two.running(spark), agents(two, "ab", *LOAD):
        with client(two, "a") as writer:
            writer.execute("INSERT INTO items (id, name, price) VALUES (1, 'ring', '150')")
            writer.execute("INSERT INTO parent VALUES (1, 'kept'), (2, 'gone')")
            writer.execute("INSERT INTO child VALUES (10, 1), (11, 1), (20, 2)")
            writer.execute(f"INSERT INTO wide VALUES (1, {', '.join('?' * len(WIDE))})", WIDE)
        wait_until(lambda: len(held(two, "b", "wide")) == 1, lambda: "the rows arrive")
        with client(two, "a") as writer:
            writer.execute("UPDATE parent SET id = 5 WHERE id = 1")
        with client(two, "a") as writer:
            writer.execute("DELETE FROM parent WHERE id = 2")
        with client(two, "b") as writer:
            writer.execute("UPDATE wide SET c349 = 'of b'")

        wait_until(lambda: held(two, "a", "wide")[0][-1] == "of b", lambda: "b's row arrives")
        wait_until(lambda: len(held(two, "b", "child")) == 2, lambda: "the children are gone")
        assert is_level(two)
        assert held(two, "a", "child") == [(10, 5), (11, 5)]
        for table in TABLES:
            assert held(two, "a", table) == held(two, "b", table)
        assert held(two, "b", "items") == [(1, "ring", "150", 1, "hello")]
        assert held(two, "b", "seen") == [("RING",)]

        with client(two, "b") as writer:
            writer.execute("INSERT INTO t VALUES ('long', ?)", (LONG,))
        wait_for_uncarried(two, "long")
        (row,) = uncarried(two).values()
        two.slackwater("quarantine", "drop", row["id"])
        wait_for_rows(two, {"a": {}, "b": {}})
        assert is_level(two)

    with client(two, "b") as reader:
        (saved,) = reader.execute("SELECT id FROM _slackwater_saved").fetchall()
        values = "SELECT value FROM _slackwater_saved_values WHERE saved = ? AND name = 'v'"
        assert reader.execute(values, saved).fetchone() == (LONG,)


@pytest.mark.more
def test_references_and_wide_rows_are_carried_between_products(
    with_server: Site, spark: SparkSession
) -> None:
    """A cascade of one product arrives at the other as rows, and cascades no second time."""
    two = with_server

    def of(name: str, query: str) -> list[tuple[object, ...]]:
        return agents_of_kinds.select(two, name, query)

    child, last = "SELECT id, parent FROM child ORDER BY 1", "SELECT c349 FROM wide"
    with two.running(spark), agents_of_kinds.agents(two, "ab"):
        with client(two, "a") as writer:
            writer.execute("INSERT INTO parent VALUES (1, 'kept'), (2, 'gone')")
            writer.execute("INSERT INTO child VALUES (10, 1), (11, 1), (20, 2)")
            writer.execute(f"INSERT INTO wide VALUES (1, {', '.join('?' * len(WIDE))})", WIDE)
        wait_until(lambda: len(of("b", last)) == 1, lambda: "the rows arrive")
        with client(two, "a") as writer:
            writer.execute("UPDATE parent SET id = 5 WHERE id = 1")
        wait_until(lambda: (11, 5) in of("b", child), lambda: str(of("b", child)))
        agents_of_kinds.execute(two, "b", "DELETE FROM parent WHERE id = 2")
        agents_of_kinds.execute(two, "b", "UPDATE parent SET id = 6 WHERE id = 5")
        agents_of_kinds.execute(two, "b", "UPDATE wide SET c349 = 'of b'")

        wait_until(lambda: of("a", last) == [("of b",)], lambda: "b's row arrives")
        assert is_level(two)
        assert of("a", child) == of("b", child) == [(10, 6), (11, 6)]
        assert of("a", "SELECT * FROM wide") == of("b", "SELECT * FROM wide")
