"""Real services for the tests: one broker and one Spark for the whole run, started when needed."""

import logging
import os
import signal
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from connectors.kafka.embedded.broker import Broker
from streaming.jvm.session import session
from tests.harness.examples import examples
from tests.harness.hub_process import QUICK_JAVA
from tests.harness.rights import WITH_RIGHTS
from tests.harness.rotation import has_its_turn

os.environ.pop("COLUMNS", None)  # xdist gives its processes 80; of a pipe no line is broken

settings.register_profile("slackwater", examples())
settings.load_profile("slackwater")

SPREAD = {
    *("test_scenarios", "test_convergence", "test_races", "test_retired", "test_faults"),
    *("test_bulk", "test_consumers_away", "test_limits", "test_hanging", "test_lost_topics"),
    *("test_bad_input", "test_full_window", "test_lost_files", "test_conflict_functions"),
    *("test_broker_away", "test_replay_of_stories", "test_deviations"),
}
"""Long files whose tests share nothing: whichever process is free takes the next of them."""
MORE = {"demo", "deploy"}
"""Folders of which `make test` has nothing: `make test-more` has them."""
ALWAYS = {"demo"}
"""Folders that every run of `make test-more` has; of everything else it has a part."""
ONE_AT_A_TIME = {"demo"}
"""Folders that stay in one process: each demonstration has six processes of its own, and clocks."""

SMALL_SPARK = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests by the services that they ask for, by their folder, and by the rotation."""
    for item in items:
        if item.path.parent.name in MORE:
            item.add_marker(pytest.mark.more)
        if item.get_closest_marker("more") and not _has_its_turn(item):
            item.add_marker(pytest.mark.slow)
        fixtures = set(getattr(item, "fixturenames", ()))
        if "spark" in fixtures:
            item.add_marker(pytest.mark.spark)
        if "broker" in fixtures:
            item.add_marker(pytest.mark.kafka)


def _has_its_turn(item: pytest.Item) -> bool:
    """Whether this run takes a test: a file rotates as one, of one that is SPREAD each test."""
    share = item.nodeid if item.path.stem in SPREAD else item.path.name
    return item.path.parent.name in ALWAYS or has_its_turn(zlib.crc32(share.encode()))


class FilesOrTests(LoadFileScheduling):  # type: ignore[misc]
    """A file stays in one process, for its tests may share what is dear to make; if not SPREAD."""

    def _split_scope(self, nodeid: str) -> str:
        file = Path(super()._split_scope(nodeid))
        if file.stem in SPREAD:
            return nodeid
        return str(file.parent if file.parent.name in ONE_AT_A_TIME else file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Which process gets which tests, where files are shared out."""
    return FilesOrTests(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for all tests, who may take rights away; who stops one starts one of his own."""
    with Broker.start(tmp_path_factory.mktemp("broker"), settings=WITH_RIGHTS) as running:
        yield running


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The product's own session, small, without the compiler that pays only later."""
    warehouse = {"spark.sql.warehouse.dir": tmp_path_factory.mktemp("warehouse").as_uri()}
    running = session("tests", {**SMALL_SPARK, **warehouse})
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """Give the process its own log back: a command that a test runs in it may configure that."""
    root, kafka = logging.getLogger(), logging.getLogger("kafka")
    before = root.handlers[:], root.level, kafka.level
    yield
    root.handlers[:], root.level, _ = before
    kafka.setLevel(before[2])


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """Give the process its own signals back: a hub that a test runs in it receives them."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def topic_prefix() -> str:
    """A prefix that no other test has, so that topics of one broker do not meet."""
    return f"t{uuid.uuid4().hex[:12]}."
