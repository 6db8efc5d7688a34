"""Agents publish what their databases declare: a difference is named before it refuses a row."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.harness.hub_process import wait_until
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import agents, create, execute, rows


@pytest.fixture
def two(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas of one schema."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        for name in "ab":
            create(made, name)
        yield made


def subjects(at: Site) -> list[str]:
    """The differences that matter, by `slackwater schema`."""
    return [one["subject"] for one in at.slackwater("schema")["differences"] if one["matters"]]


def doctors_line(at: Site) -> Any:  # noqa: ANN401 - whatever JSON it is
    """What `doctor` says of the schemas."""
    return next(one for one in at.slackwater("doctor") if one["subject"] == "schemas")


@pytest.mark.more
def test_a_difference_is_named_as_soon_as_it_is_there(two: Site, spark: SparkSession) -> None:
    """`level` is about the rows and says yes; `status` and `doctor` name the constraint."""
    with two.running(spark):
        with agents(two, "ab"):
            wait_until(lambda: two.slackwater("schema")["is_good"], lambda: "both are known")
            assert doctors_line(two)["is_ok"]

            execute(two, "b", "CREATE UNIQUE INDEX one_value ON t (v)")
            wait_until(lambda: subjects(two) == ["UNIQUE (v)"], lambda: str(subjects(two)))

            found = two.slackwater("level", "--wait", "20")
            assert found["level"]
            assert [one["subject"] for one in found["schema_differences"]] == ["UNIQUE (v)"]
            assert len(two.slackwater("status")["schema_differences"]) == 1
            assert not doctors_line(two)["is_ok"]
            execute(two, "a", "INSERT INTO t VALUES ('k', 'v')")
            wait_until(lambda: rows(two, "b") == {"k": "v"}, lambda: "rows flow on")
        with agents(two, "ab"):
            assert subjects(two) == ["UNIQUE (v)"]
            execute(two, "b", "DROP INDEX one_value")
            wait_until(lambda: not subjects(two), lambda: str(subjects(two)))
            assert two.slackwater("level", "--wait", "20")["schema_differences"] == []
