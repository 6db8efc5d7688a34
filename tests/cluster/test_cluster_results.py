"""Tables and topics are the same, however many executors there are, and whoever carries."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.harness.full_story import (
    FUNCTIONS,
    bring_rows_up,
    checked_records,
    happen,
    of_everything,
)
from tests.harness.hub_on_cluster import use_cluster
from tests.harness.site import Site, site
from tests.harness.spark_cluster import SparkCluster

LIMITS = {"chunk_items": 7, "materialize_every_epochs": 2, "min_partitions": 5}
ON_CLUSTER = {"driver": (1_000_000, 2), "one_executor": (0, 1), "two_executors": (0, 2)}
"""Who carries -> limits.driver_batch_records, and the cores that the hub may use."""


@pytest.fixture
def sites(
    tmp_path: Path, broker: Broker, topic_prefix: str, cluster: SparkCluster
) -> Iterator[dict[str, Site]]:
    """One hub without a cluster, and others on it."""
    with ExitStack() as stack:

        def made(name: str, driver_records: int) -> Site:
            limits = {**LIMITS, "driver_batch_records": driver_records}
            prefix = f"{topic_prefix}{name}."
            given = (tmp_path / name, broker.bootstrap_servers, prefix, "abc", limits, FUNCTIONS)
            return stack.enter_context(site(*given))

        found = {"local": made("local", 1_000_000)}
        for name, (driver_records, cores) in ON_CLUSTER.items():
            found[name] = made(name, driver_records)
            use_cluster(found[name], cluster.address, cores)
        yield found


def test_results_do_not_depend_on_executors(sites: dict[str, Site], spark: SparkSession) -> None:
    """Else nobody could add a machine, or take one away, without asking what it changes."""
    for name, at in sites.items():
        run = partial(at.run_available, spark) if name == "local" else partial(work_off, at)
        happen(at, run)
        bring_rows_up(at, spark)

    expected = checked_records(sites["local"])
    of_everything(sites["local"])
    for name in ON_CLUSTER:
        found = checked_records(sites[name])
        assert [what for what in expected if found[what] != expected[what]] == [], name


def work_off(at: Site) -> None:
    """Let a hub on the cluster work off what is there."""
    with at.hub("--available-now") as hub:
        hub.ends_with(0)
