"""Real services for the tests: one broker and one Spark for the whole run, started when needed."""

import uuid
from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from connectors.kafka.broker import Broker
from streaming.jvm.session import session
from tests.harness.examples import examples
from tests.harness.rights import WITH_RIGHTS

settings.register_profile("slackwater", examples())
settings.load_profile("slackwater")

SMALL_SPARK = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests by the services that they ask for, and by what stays in one process.

    That is a file, whose tests may share what is dear to make, unless its tests are `spread`.
    """
    for item in items:
        if item.get_closest_marker("spread") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
        fixtures = set(getattr(item, "fixturenames", ()))
        if "spark" in fixtures:
            item.add_marker(pytest.mark.spark)
        if "broker" in fixtures:
            item.add_marker(pytest.mark.kafka)


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


@pytest.fixture
def topic_prefix() -> str:
    """A prefix that no other test has, so that topics of one broker do not meet."""
    return f"t{uuid.uuid4().hex[:12]}."
