"""Unique values that moved among rows while a replica was away arrive, whatever their order."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.e2e.test_refused_rows import CREATE, insert, is_level, refused, wait_for_rows
from tests.harness.agents_of_kinds import agents, create, execute
from tests.harness.site import Site, site

BEFORE = {"1": "a", "2": "b", "3": "x", "4": "y", "5": "z", "6": "gone"}
AFTER = {"1": "b", "2": "a", "3": "y", "4": "z", "5": "x", "0": "gone"}


@pytest.fixture
def two(tmp_path: Path, broker: Broker, topic_prefix: str, server: str | None) -> Iterator[Site]:
    """A hub with two replicas, in whose tables `v` is unique; b is of any kind."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        create(made, "a", CREATE)
        create(made, "b", CREATE, server=server)
        yield made


def test_values_that_moved_meanwhile_arrive_in_one_batch(two: Site, spark: SparkSession) -> None:
    """A swap, a ring of three, and a row that takes the value of a deleted one."""
    with two.running(spark), agents(two, "a"):
        with agents(two, "b"):
            for key, value in BEFORE.items():
                insert(two, "a", key, value)
            wait_for_rows(two, {"b": BEFORE})

        execute(two, "a", "DELETE FROM t WHERE k = '6'")
        insert(two, "a", "0", "gone")
        execute(two, "a", "UPDATE t SET v = '-' || v WHERE k > '0'")
        for key in "12345":
            execute(two, "a", "UPDATE t SET v = ? WHERE k = ?", AFTER[key], key)
        wait_for_rows(two, {"a": AFTER})

        with agents(two, "b"):
            wait_for_rows(two, {"b": AFTER})
            assert is_level(two)
            assert refused(two) == []
