"""Driver and executors carry the same batches to the same tables and the same topics."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from checkpoints.store import StateStore
from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from tests.harness.full_story import (
    FUNCTIONS,
    ROUNDS,
    bring_rows_up,
    checked_records,
    happen,
    of_everything,
)
from tests.harness.site import Site, site

NOBODY_IS_SILENT = "ack_timeout_s = 36000"
"""However long a round takes on a busy machine."""


@pytest.fixture
def both(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Mapping[str, Site]]:
    """Two hubs, one of which lets the executors carry whatever comes."""
    limits = {"chunk_items": 7, "materialize_every_epochs": 1_000}
    with (
        site(
            tmp_path / "driver",
            broker.bootstrap_servers,
            f"{topic_prefix}driver.",
            "abc",
            {**limits, "driver_batch_records": 1_000_000},
            FUNCTIONS,
        ) as driver,
        site(
            tmp_path / "executors",
            broker.bootstrap_servers,
            f"{topic_prefix}executors.",
            "abc",
            {**limits, "driver_batch_records": 0},
            FUNCTIONS,
        ) as executors,
    ):
        for at in (driver, executors):
            text = at.file.read_text()
            at.file.write_text(text.replace("[hub]", f"[hub]\n{NOBODY_IS_SILENT}"))
        yield {"driver": driver, "executors": executors}


def test_both_carriers_write_and_send_the_same(
    both: Mapping[str, Site], spark: SparkSession
) -> None:
    """With conflicts, transactions, pending ones, quarantine, refreshes and merged images."""
    for at in both.values():
        happen(at, partial(at.run_available, spark))
        bring_rows_up(at, spark)

    by_driver, by_executors = (checked_records(at) for at in both.values())
    for name, rows in by_driver.items():
        assert rows == by_executors[name], name
    of_everything(both["driver"])
    assert not by_spark(both["driver"])
    assert len(by_spark(both["executors"])) == ROUNDS


def by_spark(at: Site) -> list[dict[str, Any]]:
    """The commits of the changelog that executors made."""
    history = StateStore(at.state).table(TableName.CHANGELOG).history()
    return [one for one in history if "Spark" in one.get("engineInfo", "")]
