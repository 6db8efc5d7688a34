"""A hub that has nothing to do does nothing."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from checkpoints.store import StateStore
from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from tests.harness.hub_process import wait_until
from tests.harness.site import Site, site

REST_S = 3.0
"""Thirty times the interval at which a hub looks for work."""


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        yield made


def stays(seen: Callable[[], object]) -> bool:
    """Whether it is the same after a while."""
    before = seen()
    time.sleep(REST_S)
    return seen() == before


def test_rows_are_brought_up_to_date_while_nothing_comes(
    tmp_path: Path, broker: Broker, topic_prefix: str, spark: SparkSession
) -> None:
    """Whoever looks into `rows` of a quiet hub finds them, long before it has 2,000 hub epochs."""
    limits = {"materialize_every_s": 1}
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, limits=limits) as quiet:
        a = quiet.replicas["a"]
        with quiet.running(spark) as hub:
            a.hello()
            a.write("k", "by a")
            hub.takes(a)

            rows = StateStore(quiet.state)
            wait_until(
                lambda: rows.refreshed(TableName.ROWS).version() > 0, lambda: "`rows` has the row"
            )

    (row,) = _rows(spark, quiet)
    assert (row["key"], row["image"]) == ('{"k":"k"}', '{"k":"k","v":"by a"}')


def _rows(spark: SparkSession, of: Site) -> list[Row]:
    return spark.read.format("delta").load(str(of.state / TableName.ROWS)).collect()


def test_a_hub_at_rest_writes_and_sends_nothing(pair: Site, spark: SparkSession) -> None:
    """An `applied` of a consumer that has everything causes no commit that it must acknowledge."""
    a, b = pair.replicas["a"], pair.replicas["b"]

    def written() -> object:
        files = {p for p in pair.state.rglob("*") if p.is_file()}
        return files, pair.updates("a"), pair.updates("b")

    with pair.running(spark) as hub:
        a.hello()
        b.hello()
        a.write("k", "by a")
        hub.takes(a, b)
        hub.brings(a, b)

        wait_until(lambda: stays(written), lambda: "a hub with nothing to do rests")
