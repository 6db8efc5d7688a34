"""A delayed replica: it stands as the others did, whatever they delete and it goes through."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.harness.agents_of_kinds import agents, create, execute, rows
from tests.harness.site import Site, site

LONG_S = 3_600


@pytest.fixture
def two(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas; b is delayed by two seconds."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        for name in "ab":
            create(made, name)
        delays(made, 2)
        yield made


def delays(at: Site, delay_s: int) -> None:
    """Give b this delay; its agreement is the last of the file."""
    text = at.file.read_text().split("delay_s")[0]
    at.file.write_text(f"{text}delay_s = {delay_s}\n")


def delayed(at: Site) -> int:
    """How many hub epochs wait by b's delay, as `status` says."""
    waiting = agreement_of_b(at)["delayed"]
    return int(waiting["hub_epochs"]) if waiting else 0


def agreement_of_b(at: Site) -> dict[str, Any]:
    """What `status` says of it."""
    found = {one["name"]: one for one in at.slackwater("status")["agreements"]}
    return dict(found["b"])


@pytest.mark.more
def test_a_delayed_replica_has_the_rows_that_the_others_deleted(
    two: Site, spark: SparkSession
) -> None:
    """It gets what is due, over restarts; a pause and a resync bring nothing early; --now does."""
    with two.running(spark) as hub, agents(two, "ab"):
        execute(two, "a", "INSERT INTO t VALUES ('k', 'v')")
        hub.waits_for(lambda: rows(two, "b") == {"k": "v"}, "b has what is due")
        hub.waits_for(lambda: two.slackwater("level")["level"], "all are level")
        execute(two, "b", "INSERT INTO t VALUES ('of b', 'w')")
        hub.waits_for(lambda: "of b" in rows(two, "a"), "what b writes is at a at once")
        hub.waits_for(lambda: not delayed(two), "b has all")

    delays(two, LONG_S)
    with two.running(spark) as hub, agents(two, "ab"):
        execute(two, "a", "DELETE FROM t WHERE k = 'k'")
        hub.waits_for(lambda: delayed(two) > 0, "the delete waits")
        hub.waits_for(lambda: two.slackwater("level")["level"], "what waits is no lack")
        two.slackwater("pause", "b")
        hub.waits_for(lambda: agreement_of_b(two)["state"] != "in_sync", "b is paused")
        two.slackwater("resync", "b")
        hub.waits_for(lambda: agreement_of_b(two)["state"] == "in_sync", "b has what is due")

    with two.running(spark) as hub, agents(two, "ab"):
        hub.waits_for(lambda: two.slackwater("level")["level"], "all are level after a restart")
        assert rows(two, "b") == {"k": "v", "of b": "w"}
        two.slackwater("resume", "b", "--now")
        hub.waits_for(lambda: rows(two, "b") == {"of b": "w"}, "what waited is sent at once")
        hub.waits_for(lambda: two.slackwater("level")["level"], "all are level")
        assert rows(two, "a") == rows(two, "b")
