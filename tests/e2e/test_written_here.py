"""Writes that stay at one replica: nobody else gets them, and nobody is left to think so."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.harness.agents_of_kinds import agents, create, execute, execute_here, place, rows
from tests.harness.site import Site, site


@pytest.fixture
def two(tmp_path: Path, broker: Broker, topic_prefix: str, postgres: str) -> Iterator[Site]:
    """A hub with two replicas: a file of SQLite, and a database of PostgreSQL."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        create(made, "a")
        create(made, "b", server=postgres)
        yield made


def named(at: Site) -> set[tuple[str, int]]:
    """The replicas of which `level` says that rows were written there only, and how many."""
    return {(one["replica"], one["rows"]) for one in at.slackwater("level")["local_writes"]}


@pytest.mark.more
def test_they_are_named_until_they_are_set_right_or_accepted(
    two: Site, spark: SparkSession
) -> None:
    """All else goes on as ever, and `level` says yes."""
    of_b = f"--database=b={place(two, 'b')}"
    one_round = ("compare", "--continuous", "--rounds=1", "--settle=0.1", of_b)
    repair = ("--repair", "--source=hub", "--all", "--yes", "--why", "it was a mistake")
    with two.running(spark) as hub, agents(two, "ab"):
        execute(two, "a", "INSERT INTO t VALUES ('k', 'v'), ('l', 'w')")
        hub.waits_for(lambda: len(rows(two, "b")) == 2, "b has the rows")

        execute_here(two, "a", "UPDATE t SET v = 'of a' WHERE k = 'k'")
        execute_here(two, "b", "DELETE FROM t WHERE k = 'l'", "UPDATE t SET v = 'of b'")
        execute(two, "a", "INSERT INTO t VALUES ('m', 'x')")
        hub.waits_for(lambda: named(two) == {("a", 1), ("b", 2)}, "both are named")
        hub.waits_for(lambda: two.slackwater("level")["level"], "all that is told is everywhere")
        assert rows(two, "a") == {"k": "of a", "l": "w", "m": "x"}
        assert rows(two, "b") == {"k": "of b", "m": "x"}

        two.slackwater("local", "accept", "a", "--why", "only here")
        assert two.slackwater(*one_round)["differing"] == 2
        assert named(two) == {("b", 2)}
        two.slackwater("compare", "hub", "b", "--settle=0.1", of_b, *repair)
        hub.waits_for(lambda: rows(two, "b") == {"k": "v", "l": "w", "m": "x"}, "b is mended")
        assert two.slackwater(*one_round)["differing"] == 0
        assert named(two) == set()
