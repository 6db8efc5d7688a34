"""Records without a value, which Debezium sends behind each delete, are no holes in the history."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from streaming.core.replay.audit import Check
from tests.harness.site import Site, site


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        yield made


def test_verify_tells_records_without_a_value_from_changes_that_are_gone(
    pair: Site, spark: SparkSession
) -> None:
    """Sound with them; with a change removed, each offset without a trace is named."""
    a = pair.replicas["a"]
    a.hello()
    pair.replicas["b"].hello()
    gone = a.write("k", "v1")
    empty = a.send_bytes(None)
    a.write("k", "v2")
    pair.run_available(spark)
    a.send_bytes(None)
    pair.run_available(spark)
    sound = pair.slackwater("verify")

    table = DeltaTable(str(pair.state / TableName.CHANGELOG))
    rows = table.to_pyarrow_table()
    write_deltalake(table, rows.filter(pc.not_equal(rows["csn"], gone.csn)), mode="overwrite")
    found = pair.slackwater("verify")["found"]

    assert sound["sound"], sound
    (hole,) = (one["detail"] for one in found if one["check"] == Check.OFFSETS)
    assert f"from {empty - 1} to {empty}" in hole
    assert "of 2 such offsets 1 had no record with a value" in hole
