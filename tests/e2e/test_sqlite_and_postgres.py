"""A SQLite file and a PostgreSQL database are replicas of one another."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from streaming.cli.main import main
from tests.harness import sqlite_agents
from tests.harness.postgres_agents import PostgresSite, agent_of
from tests.harness.site import Site, site


@pytest.fixture
def there(postgres: str, topic_prefix: str) -> PostgresSite:
    """A database with one row."""
    there = PostgresSite(postgres, f"shop{topic_prefix}".replace(".", ""))
    there.create()
    there.execute("INSERT INTO t VALUES ('old', 'of b')")
    return there


@pytest.fixture
def at(tmp_path: Path, broker: Broker, topic_prefix: str, there: PostgresSite) -> Iterator[Site]:
    """A hub with replica a in an empty file, and b in the database, which is attached."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as at:
        sqlite_agents.create(at, "a")
        at.slackwater("attach", there.dsn, "--replica", "b", "--yes")
        yield at


@pytest.mark.more
def test_both_hold_the_same_rows_behind_a_conflict(
    at: Site, there: PostgresSite, spark: SparkSession
) -> None:
    """Rows from before, writes on both sides, and one row that both write at once."""
    with at.running(spark) as hub, sqlite_agents.agents(at, "a"):
        with agent_of(at, "b", there.dsn):
            hub.waits_for(lambda: sqlite_agents.rows(at, "a") == {"old": "of b"}, "a has it")
            sqlite_agents.execute(at, "a", "INSERT INTO t VALUES ('mine', 'of a')")
            there.execute("INSERT INTO t VALUES ('yours', 'of b')")
            hub.waits_for(lambda: there.rows().keys() == {"old", "mine", "yours"}, "b has it")
            hub.waits_for(lambda: len(sqlite_agents.rows(at, "a")) == 3, "a has all")
        there.execute("UPDATE t SET v = 'at once, of b' WHERE k = 'mine'")
        sqlite_agents.execute(at, "a", "UPDATE t SET v = 'at once, of a' WHERE k = 'mine'")
        with agent_of(at, "b", there.dsn):
            hub.waits_for(lambda: len(at.slackwater("conflicts", "list")) == 1, "they conflict")
            hub.waits_for(lambda: at.slackwater("level")["level"] is True, "all are level")
        rows = there.rows()
        for one in (str(sqlite_agents.database(at, "a")), "hub"):
            found = at.slackwater("compare", one, there.dsn)
            assert (found["is_equal"], found["second"]) == (True, "b")
            assert found["tables"][0]["rows"] == {"first": 3, "second": 3}

    assert rows == sqlite_agents.rows(at, "a")
    assert rows["mine"].startswith("at once")
    assert len(rows) == 3


@pytest.mark.more
def test_a_database_that_was_detached_and_emptied_is_filled_from_the_hub(
    at: Site, there: PostgresSite, spark: SparkSession
) -> None:
    """Emptying it while it is attached would delete the rows everywhere."""
    with at.running(spark) as hub, sqlite_agents.agents(at, "a"):
        with agent_of(at, "b", there.dsn):
            sqlite_agents.execute(at, "a", "INSERT INTO t VALUES ('mine', 'of a')")
            there.execute("UPDATE t SET v = 'again' WHERE k = 'old'")
            hub.waits_for(lambda: len(there.rows()) == 2, "b has both")
            hub.waits_for(lambda: at.slackwater("level")["level"] is True, "all are level")
        assert main(["detach", there.dsn, "--replica", "b", "--yes"]) == 0
        there.execute("TRUNCATE t")
        at.slackwater("attach", there.dsn, "--replica", "b", "--yes")
        with agent_of(at, "b", there.dsn):
            hub.waits_for(lambda: len(there.rows()) == 2, "b has both again")
            there.execute("INSERT INTO t VALUES ('new', 'of b')")
            hub.waits_for(lambda: len(sqlite_agents.rows(at, "a")) == 3, "a has the new one")
            hub.waits_for(lambda: at.slackwater("level")["level"] is True, "all are level")

    assert there.rows() == sqlite_agents.rows(at, "a")
    assert there.rows()["old"] == "again"
