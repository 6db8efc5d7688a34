"""A SQLite file and a PostgreSQL database are replicas of one another."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.connectors.postgres.scratch_server import running_server
from tests.harness import sqlite_agents
from tests.harness.postgres_agents import PostgresSite, agent_of
from tests.harness.site import site


@pytest.mark.more
def test_both_hold_the_same_rows_behind_a_conflict(
    tmp_path: Path, broker: Broker, topic_prefix: str, spark: SparkSession
) -> None:
    """Rows from before, writes on both sides, and one row that both write at once."""
    with (
        running_server() as server,
        site(tmp_path, broker.bootstrap_servers, topic_prefix) as at,
    ):
        there = PostgresSite(server, "shop")
        there.create()
        there.execute("INSERT INTO t VALUES ('old', 'of b')")
        sqlite_agents.create(at, "a")
        at.slackwater("attach", there.dsn, "--replica", "b", "--yes")
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

        assert rows == sqlite_agents.rows(at, "a")
        assert rows["mine"].startswith("at once")
        assert len(rows) == 3
