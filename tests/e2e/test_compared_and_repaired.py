"""Rows that differ behind the hub's back: found, set right through it, and on record."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.harness.agents_of_kinds import (
    agents,
    create,
    execute,
    execute_uncaptured,
    place,
    rows,
)
from tests.harness.site import Site, site


@pytest.fixture
def two(tmp_path: Path, broker: Broker, topic_prefix: str, server: str | None) -> Iterator[Site]:
    """A hub with two replicas, whose databases are there and empty; b is of any kind."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        create(made, "a")
        create(made, "b", server=server)
        yield made


@pytest.mark.more
def test_what_nobody_captured_is_found_and_set_right(two: Site, spark: SparkSession) -> None:
    """The hub's row goes to the replica that differs, or the replica's row to everybody."""
    where = [f"--database={name}={place(two, name)}" for name in "ab"]
    between = ("compare", "a", "b", *where)
    order = ("--repair", "--all", "--yes", "--by", "me", "--why", "a tool knew no triggers")
    with two.running(spark) as hub, agents(two, "ab"):
        execute(two, "a", "INSERT INTO t VALUES ('k', 'v'), ('l', 'w'), ('m', 'x')")
        hub.waits_for(lambda: len(rows(two, "b")) == 3, "b has the rows")
        assert two.slackwater(*between)["is_equal"]
        edit, delete = "UPDATE t SET v = 'edited' WHERE k = 'k'", "DELETE FROM t WHERE k = 'l'"
        execute_uncaptured(two, "b", edit, delete)
        hub.waits_for(lambda: two.slackwater("level")["level"], "nobody knows of it")

        found = two.slackwater(*between, "--settle", "0.1")
        assert [(row["key"], row["kind"]) for row in found["rows"]] == [
            ('{"k":"k"}', "columns"),
            ('{"k":"l"}', "only_first"),
        ]
        key = ("--table", "t", "--key", "k")
        two.slackwater("compare", "b", "hub", *where, "--settle=0.1", "--source=b", *key, *order)
        hub.waits_for(lambda: rows(two, "a")["k"] == "edited", "a has the row of b")
        two.slackwater("compare", "hub", "b", *where, "--settle=0.1", "--source=hub", *order)
        hub.waits_for(lambda: "l" in rows(two, "b"), "b has the row of the hub")

        assert rows(two, "a") == rows(two, "b") == {"k": "edited", "l": "w", "m": "x"}
        hub.waits_for(lambda: two.slackwater("level")["level"], "all are level")
        for sides in (("a", "b"), ("hub", "a"), ("b", "hub")):
            assert two.slackwater("compare", *sides, *where)["is_equal"]

    asked = "SELECT command, argument FROM hub_config WHERE argument LIKE '%me%' ORDER BY number"
    ordered = two.slackwater("sql", asked)["rows"]
    assert [row["command"] for row in ordered] == ["prefer", "repair"]
    assert all("a tool knew no triggers" in row["argument"] for row in ordered)
