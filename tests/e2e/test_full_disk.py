"""A state whose disk is full: one sentence, and the next hub goes on where this one stopped."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from streaming.core.model.errors import HubError
from streaming.hub import query
from tests.harness import verdict
from tests.harness.site import Site, site

SIZE = 8_000_000


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas, whose state has a file system of a few megabytes."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        made.state.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(made.state)]
        if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("only who may mount can fill a disk of his own")
        yield made
        subprocess.run(["umount", "--lazy", str(made.state)], check=True)


def test_a_hub_on_a_full_disk_says_so_and_goes_on_later(pair: Site, spark: SparkSession) -> None:
    """Spark's own failure would be a hundred lines that name no remedy."""
    a, b = pair.replicas["a"], pair.replicas["b"]
    a.hello()
    b.hello()
    pair.run_available(spark)
    written = a.write("k", "while the disk is full")
    filler = pair.state / "filler"
    fill(filler)

    with pair.hub() as hub:
        said = hub.ends_with(1)

    assert "No space left on device): check its disk (space, rights), then start the hub" in said
    assert said.count("\n") < 10
    filler.unlink()
    pair.run_available(spark)
    b.catch_up()
    assert b.rows == {written.row: written.after}
    verdict.check(pair)


def test_a_query_that_spark_does_not_start_is_one_sentence(pair: Site, spark: SparkSession) -> None:
    """The disk has room here, but Spark's scratch is no folder."""
    pair.run_available(spark)
    scratch = pair.state / "spark"
    shutil.rmtree(scratch)
    scratch.symlink_to("/dev/null")

    with pytest.raises(HubError, match=r"^Spark could not start to read: ") as told:
        start(pair, spark)

    assert "\n" not in str(told.value)


def fill(filler: Path) -> None:
    """Write until the disk takes no byte more."""
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(10_000)):
            pass
    assert shutil.disk_usage(filler.parent).free == 0


def start(at: Site, spark: SparkSession) -> None:
    """Start a query whose scratch stands in that of the state."""
    records = spark.readStream.format("rate").load()
    writer = records.writeStream.foreachBatch(lambda *_: None)
    query.start(writer, at.state / "spark" / "one", at.state)
