"""Records that others end at: in every codec, too large, and in a state that they spoilt."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.tables import TableName
from connectors import wire
from connectors.kafka.embedded.broker import Broker
from streaming.core.records.kept_bytes import HEAD_BYTES
from tests.checkpoints.spoilt_state import spoil
from tests.harness import verdict
from tests.harness.record_batches import send_batch
from tests.harness.site import Site, site

CODECS = ("gzip", "snappy", "lz4", "zstd")


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        yield made


def test_no_record_ends_a_hub_for_good(pair: Site, broker: Broker, spark: SparkSession) -> None:
    """It must also start again, and have everybody's changes meanwhile."""
    a, b = pair.replicas.values()
    for replica in (a, b):
        replica.hello()
    bad, good = list[bytes](), list[str]()
    for codec in CODECS:
        two = [wire.encode("another", a.change(f"{codec}-{n}", "v")) for n in range(2)]
        change = a.change(codec, "good")
        good.append(change.csn)
        send_batch(broker, a.changes, codec, [two[0], wire.encode(a.session, change), two[1]])
        bad += two
    blanks = json.dumps({"v": 1, "kind": "x", "pad": " " * 10 * HEAD_BYTES}).encode()
    send_batch(broker, a.changes, "zstd", [blanks])
    pair.run_available(spark)
    kept = verdict.rows_of(pair.state, TableName.QUARANTINE, "offset")
    verified = pair.slackwater("verify")
    spoil(pair.state, batch=1, id="9-0", rid=a.rid, offset=0, topic=a.changes)
    good.append(b.write("behind", "v").csn)

    pair.run_available(spark)

    assert verified["sound"], verified
    *sessions, large = kept
    assert [(row["reason"], row["value"]) for row in sessions] == [("session", one) for one in bad]
    assert (large["reason"], large["bytes"]) == ("size", len(blanks))
    assert large["value"] == blanks[:HEAD_BYTES]
    judged = {row["csn"] for row in verdict.rows_of(pair.state, TableName.CHANGELOG)}
    assert judged == set(good)
