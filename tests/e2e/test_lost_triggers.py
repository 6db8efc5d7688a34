"""What captures, and somebody dropped, and the way back that the agent names.

Triggers and a journal are SQLite's alone, a publication is PostgreSQL's.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from connectors.sqlite.install.uninstall import uninstall
from tests.harness.agents_of_kinds import agents, at_work, create, execute, rows
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import database


@pytest.fixture
def two(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas, whose databases are there and empty."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        for name in "ab":
            create(made, name)
        yield made


@pytest.mark.more
def test_nobody_is_level_until_the_table_is_copied(two: Site, spark: SparkSession) -> None:
    """From the write that nobody captured, over the restart that is advised, to the resync."""
    with two.running(spark) as hub, agents(two, "a"):
        with at_work(two, "b") as agent:
            execute(two, "a", "INSERT INTO t VALUES ('k', 'v'), ('l', 'w')")
            hub.waits_for(lambda: rows(two, "b") == {"k": "v", "l": "w"}, "b has the rows")
            hub.waits_for(lambda: two.slackwater("level")["level"], "all are level")
            execute(two, "b", "DROP TRIGGER _slackwater_after_update_t")
            execute(two, "b", "UPDATE t SET v = 'LOST?' WHERE k = 'k'")

            _, said = agent.communicate(timeout=60)
            assert agent.returncode == 1
            assert "table t: it has lost its trigger _slackwater_after_update_t" in said
        hub.waits_for(lambda: two.slackwater("level")["cannot_say"], "nobody can say")

        with agents(two, "b", "--rows-are-shared"):
            hub.waits_for(lambda: not two.slackwater("level")["cannot_say"], "b is heard")
            found = two.slackwater("level")
            assert (found["level"], found["unpublished"]) == (False, {"b": 1})
            assert rows(two, "b") != rows(two, "a")

            two.slackwater("resync", "b", "--table", "t")
            hub.waits_for(lambda: two.slackwater("level")["level"], "all are level again")
            assert rows(two, "b") == rows(two, "a") == {"k": "v", "l": "w"}


@pytest.mark.more
def test_a_replica_whose_journal_was_dropped_is_filled_from_the_hub(
    two: Site, spark: SparkSession
) -> None:
    """By the commands that its agent names; what only it has is saved."""
    with two.running(spark) as hub, agents(two, "a"):
        with at_work(two, "b") as agent:
            execute(two, "b", "INSERT INTO t VALUES ('k', 'v'), ('l', 'w')")
            hub.waits_for(lambda: rows(two, "a") == {"k": "v", "l": "w"}, "a has the rows")
            execute(two, "b", "DROP TABLE _slackwater_journal")
            _, said = agent.communicate(timeout=60)
            assert "the agent's own table _slackwater_journal was dropped" in said
        uninstall(database(two, "b"), discards_unpublished=True)
        execute(two, "b", "INSERT INTO t VALUES ('m', 'only here')")

        emptied = two.slackwater("reinit", "b", "--database", str(database(two, "b")))

        assert emptied["saved"] == 1
        assert "only here" in Path(emptied["file"]).read_text()
        with agents(two, "b"):
            hub.waits_for(lambda: rows(two, "b") == {"k": "v", "l": "w"}, "b is filled")
            hub.waits_for(lambda: two.slackwater("level")["level"], "all are level")
            execute(two, "b", "UPDATE t SET v = 'new' WHERE k = 'k'")
            hub.waits_for(lambda: rows(two, "a")["k"] == "new", "b writes again")


@pytest.fixture
def with_server(tmp_path: Path, broker: Broker, topic_prefix: str, postgres: str) -> Iterator[Site]:
    """A hub with two replicas; b is a PostgreSQL database."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        create(made, "a")
        create(made, "b", server=postgres)
        yield made


@pytest.mark.more
def test_a_table_that_left_the_publication_is_told_again(
    with_server: Site, spark: SparkSession
) -> None:
    """From the write that is in no log, over the statement that the agent names, to equal rows."""
    two = with_server
    with two.running(spark) as hub, agents(two, "a"):
        with at_work(two, "b") as agent:
            execute(two, "a", "INSERT INTO t VALUES ('k', 'v'), ('l', 'w')")
            hub.waits_for(lambda: rows(two, "b") == {"k": "v", "l": "w"}, "b has the rows")
            hub.waits_for(lambda: two.slackwater("level")["level"], "all are level")
            execute(two, "b", "ALTER PUBLICATION slackwater DROP TABLE t")
            execute(two, "b", "UPDATE t SET v = 'in no log' WHERE k = 'k'")

            _, said = agent.communicate(timeout=60)
            assert agent.returncode == 1
            assert "ALTER PUBLICATION slackwater ADD TABLE t" in said
        hub.waits_for(lambda: two.slackwater("level")["cannot_say"], "nobody can say")
        execute(two, "b", "ALTER PUBLICATION slackwater ADD TABLE t")

        with agents(two, "b"):
            hub.waits_for(lambda: rows(two, "a")["k"] == "in no log", "a has the row")
            hub.waits_for(lambda: two.slackwater("level")["level"], "all are level again")
            assert rows(two, "b") == rows(two, "a") == {"k": "in no log", "l": "w"}
