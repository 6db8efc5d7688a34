"""Worker, driver or master dies in mid-run: no change is lost, and none counts twice."""

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from checkpoints.commit.faults import FaultPoint
from connectors.kafka.embedded.broker import Broker
from tests.harness.hub_on_cluster import (
    WritingReplicas,
    commits_more,
    ends_level,
    is_ready,
    use_cluster,
)
from tests.harness.hub_process import KILLED
from tests.harness.site import Site, site
from tests.harness.spark_cluster import SparkCluster

DRIVER_RECORDS = 40
"""Larger batches are carried by the executors: a run has some of both."""


@pytest.fixture
def three(
    tmp_path: Path, broker: Broker, topic_prefix: str, cluster: SparkCluster
) -> Iterator[Site]:
    """A hub on the cluster with three replicas that have said hello."""
    limits = {"driver_batch_records": DRIVER_RECORDS, "materialize_every_epochs": 5}
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc", limits) as made:
        use_cluster(made, cluster.address)
        for replica in made.replicas.values():
            replica.hello()
        yield made


def some_moment(random: Random) -> None:
    """Wait for up to the length of a batch or two."""
    time.sleep(random.uniform(0, 3))


def test_a_worker_that_is_killed(three: Site, cluster: SparkCluster, random: Random) -> None:
    """Its tasks, its cached batch and its shuffle files are gone; the other one does them again."""
    name = random.choice(sorted(cluster.workers))
    replicas = WritingReplicas(three)
    with three.hub() as hub:
        is_ready(hub)
        with replicas.writing():
            commits_more(hub, three, 4)
            some_moment(random)

            cluster.kill_worker(name)

            commits_more(hub, three, 4)
            cluster.start_worker(name)
            commits_more(hub, three, 4)
        ends_level(hub, three)


def test_all_workers_that_are_killed(three: Site, cluster: SparkCluster, random: Random) -> None:
    """The hub waits, says what it waits for, and goes on with the workers that come."""
    replicas = WritingReplicas(three)
    with three.hub() as hub:
        is_ready(hub)
        with replicas.writing():
            commits_more(hub, three, 2)
            some_moment(random)
            for name in sorted(cluster.workers):
                cluster.kill_worker(name)

            hub.waits_for(lambda: "no executor is there" in hub.output, "it says what it lacks")

            for number in (1, 2):
                cluster.start_worker(f"worker{number}")
            commits_more(hub, three, 4)
        ends_level(hub, three)


def test_a_driver_that_is_killed(three: Site, random: Random) -> None:
    """The next hub finishes its batch, while its executors may still be at work on it."""
    replicas = WritingReplicas(three)
    with three.hub() as hub, replicas.writing():
        is_ready(hub)
        commits_more(hub, three, 3)
        some_moment(random)

        hub.kill()

    with three.hub() as again:
        is_ready(again)
        with replicas.writing():
            commits_more(again, three, 4)
        ends_level(again, three)


@pytest.mark.parametrize(
    "point", [FaultPoint.AFTER_READ, FaultPoint.AFTER_CHANGELOG, FaultPoint.AFTER_COMMIT]
)
def test_a_driver_that_dies_at_a_point(three: Site, point: FaultPoint, random: Random) -> None:
    """The executors' append is there or not, and nobody noted it: the batch runs again."""
    replicas = WritingReplicas(three)
    with three.hub(fault=f"{point}:{random.randint(2, 6)}") as hub, replicas.writing():
        hub.ends_with(KILLED)
    with three.hub() as again:
        commits_more(again, three, 1)
        ends_level(again, three)


def test_a_master_that_is_restarted(three: Site, cluster: SparkCluster, random: Random) -> None:
    """Batches go on without it; afterwards it replaces an executor that is lost, as before."""
    name = random.choice(sorted(cluster.workers))
    replicas = WritingReplicas(three)
    with three.hub() as hub:
        is_ready(hub)
        with replicas.writing():
            commits_more(hub, three, 3)
            some_moment(random)

            cluster.kill_master()
            commits_more(hub, three, 3)
            cluster.start_master()

            hub.waits_for(lambda: cluster.alive() == 2, "the workers are known again")
            hub.waits_for(lambda: cluster.applications() == 1, "the hub is known again")
            cluster.kill_worker(name)
            cluster.start_worker(name)
            commits_more(hub, three, 4)
        ends_level(hub, three)
