"""One cluster of two one-core workers for all tests here, and hubs that run on it."""

import os
import time
from collections.abc import Iterator
from random import Random

import pytest

from tests.harness.spark_cluster import SparkCluster, spark_cluster

SEED = int(os.environ.get("SLACKWATER_SEED", time.time()))


def pytest_report_header() -> str:
    """The seed of the random moments; SLACKWATER_SEED repeats them."""
    return f"seed {SEED}"


@pytest.fixture
def random(request: pytest.FixtureRequest) -> Random:
    """The random moments of one test."""
    return Random(f"{SEED} {request.node.nodeid}")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A master and two workers; who kills one starts it again."""
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running
