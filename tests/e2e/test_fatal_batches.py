"""A batch that Java cannot read ends a hub twice, and is then read without Java: it is no loop."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.tables import TableName
from connectors import wire
from connectors.kafka.embedded.broker import Broker
from streaming.core.records.kept_bytes import HEAD_BYTES
from streaming.hub.outage import FAILURES
from streaming.hub.standby.rehearsal import WARM, Rehearsal
from tests.harness import verdict
from tests.harness.hub_process import wait_until
from tests.harness.record_batches import break_last_batch, send_batch
from tests.harness.site import Site, site


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        yield made


def test_a_batch_that_two_hubs_died_of_is_read_with_care(
    pair: Site,
    broker: Broker,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Else whoever runs the hub with Restart=always runs it for ever, and nobody gets anything.

    A standby does not read it at all.
    """
    a, b = pair.replicas.values()
    for replica in (a, b):
        replica.hello()
    beside = a.change("beside", "v")
    blanks = b" " * 5_000_000
    send_batch(broker, a.changes, "zstd", [blanks, wire.encode(a.session, beside)])
    send_batch(broker, a.changes, "zstd", [b"nobody", b"knows"])
    break_last_batch(tmp_path_factory.getbasetemp(), a.changes)
    good = [beside.csn, a.write("behind", "v").csn, b.write("other", "v").csn]

    for _ in range(2):
        with pytest.raises(FAILURES):
            pair.run_available(spark)
    pair.run_available(spark)
    good.append(a.write("later", "v").csn)
    pair.run_available(spark)

    kept = verdict.rows_of(pair.state, TableName.QUARANTINE, "offset")
    large, *unreadable = kept
    assert [row["reason"] for row in kept] == ["size", "unreadable", "unreadable"]
    assert (large["bytes"], large["value"]) == (len(blanks), blanks[:HEAD_BYTES])
    assert all("checksum" in row["detail"] and row["value"] is None for row in unreadable)
    judged = {row["csn"] for row in verdict.rows_of(pair.state, TableName.CHANGELOG)}
    assert judged == set(good)
    assert pair.slackwater("verify")["sound"]
    assert pair.slackwater("replay")["equal"]
    with caplog.at_level("INFO", "slackwater"), closing(Rehearsal(pair.config(), spark)) as standby:
        standby.start()
        wait_until(lambda: WARM in caplog.text, lambda: caplog.text)


@pytest.mark.slow
def test_records_that_are_larger_than_java_end_no_hub_for_good(pair: Site, broker: Broker) -> None:
    """Some kB in a topic that was not made by a hub; this one's Java has a gigabyte."""
    a, b = pair.replicas.values()
    for replica in (a, b):
        replica.hello()
    sizes = [megabytes * 2**20 for megabytes in (100, 700)]
    for size in sizes:
        send_batch(broker, a.changes, "zstd", [b" " * size])
    good = b.write("other", "v").csn

    for _ in range(2):
        with pair.hub("--available-now") as hub:
            hub.ends_with(1)
    with pair.hub("--available-now") as hub:
        hub.ends_with(0)

    kept = verdict.rows_of(pair.state, TableName.QUARANTINE, "offset")
    assert [(row["reason"], row["bytes"]) for row in kept] == [("size", size) for size in sizes]
    (judged,) = verdict.rows_of(pair.state, TableName.CHANGELOG)
    assert judged["csn"] == good
