"""`slackwater replay` on the tables of a hub at work, and what it sends again to a real topic."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.harness import verdict
from tests.harness.site import Site, site


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A site of two replicas."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as at:
        yield at


def test_the_past_is_asked_while_the_hub_goes_on(pair: Site, spark: SparkSession) -> None:
    """What a consumer was sent comes again with its ids, and it skips all of it."""
    a, b = pair.replicas.values()
    with pair.running(spark) as hub:
        for one in (a, b):
            one.hello()
        hub.brings(a, b)
        for number in range(5):
            a.write("k", f"of a {number}")
            b.write("k", f"of b {number}")
            hub.takes(a, b)
            judged = pair.slackwater("replay")
            assert judged["equal"], judged["differences"]
            hub.brings(a, b)
        sent, before = pair.updates("a"), (dict(a.rows), a.batches)

        again = pair.slackwater("replay", "--agreement", "a", "--from", "1")
        a.catch_up()
        assert (a.rows, a.batches) == before, "it has all of that"
        a.write("k", "goes on")
        hub.takes(a)
        hub.brings(a, b)

    assert again["sent"]
    assert again["records"] >= 5
    came = pair.updates("a")[len(sent) : len(sent) + again["records"]]
    assert came == sent[-again["records"] :]
    assert a.rows == b.rows == verdict.rows_of_changelog(pair)
