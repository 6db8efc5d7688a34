"""What happens where something has become as large as it may be."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.tables import TableName
from connectors.kafka.broker import Broker
from tests.harness import verdict
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import Site, site

PENDING_CHANGES = 3
OFFSETS_PER_BATCH = 4


@pytest.fixture
def small(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas that keeps few open changes, and reads few records at a time."""
    limits = {"pending_changes": PENDING_CHANGES, "offsets_per_batch": OFFSETS_PER_BATCH}
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab", limits) as made:
        yield made


def write_large(replica: ScriptedReplica) -> None:
    """A transaction with as many changes as may be open; its commit is to come."""
    for number in range(PENDING_CHANGES):
        replica.write(f"large {number}", "of a transaction", inside="large")


def is_paused(at: Site) -> dict[str, bool]:
    """Replica -> what `slackwater status` says of it."""
    return {one["name"]: one["paused"] for one in at.slackwater("status")["replicas"]}


def offsets(at: Site, replica: ScriptedReplica) -> list[int]:
    """How far the hub had read this replica's topic, commit by commit."""
    commits = verdict.rows_of(at.state, TableName.EPOCHS, "batch")
    found = [dict(row["offsets"]) for row in commits if row["kind"] == "commit"]
    return [row[replica.changes] for row in found if replica.changes in row]


def test_a_replica_with_too_many_open_changes_is_paused_until_one_aborts(
    small: Site, spark: SparkSession
) -> None:
    """They are held in memory: the others go on, and nothing of what stands behind is lost."""
    a, b = small.replicas["a"], small.replicas["b"]
    with small.running(spark) as hub:
        a.hello()
        b.hello()
        write_large(a)
        hub.takes(a, b)
        read = offsets(small, a)[-1]
        for number in range(3 * OFFSETS_PER_BATCH):
            a.write(f"behind {number}", "waits in the topic")
        b.write("meanwhile", "by b")
        hub.takes(b)
        hub.brings(b)

        assert is_paused(small) == {"a": True, "b": False}
        assert offsets(small, a)[-1] == read

        small.slackwater("abort", a.open["large"])
        hub.takes(a)
        hub.brings(a, b)
        hub.takes(a, b)

    assert is_paused(small) == {"a": False, "b": False}
    steps = [after - before for before, after in pairwise(offsets(small, a))]
    assert max(steps) <= OFFSETS_PER_BATCH
    verdict.check(small)


def test_a_paused_replica_is_read_on_with_a_larger_limit(small: Site, spark: SparkSession) -> None:
    """A transaction that large may be meant; then it is judged whole."""
    a, b = small.replicas["a"], small.replicas["b"]
    a.hello()
    b.hello()
    write_large(a)
    small.run_available(spark)
    a.commit("large")
    a.write("behind", "waits in the topic")
    small.run_available(spark)
    assert is_paused(small) == {"a": True, "b": False}

    text = small.file.read_text()
    few, many = (f"pending_changes = {count}" for count in (PENDING_CHANGES, 100))
    assert few in text
    small.file.write_text(text.replace(few, many))
    small.run_available(spark)
    for replica in (a, b):
        replica.catch_up()
    small.run_available(spark)

    assert is_paused(small) == {"a": False, "b": False}
    verdict.check(small)
