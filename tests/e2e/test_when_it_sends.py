"""When a replica is sent what: by its delay, at its hours, by its bytes a second."""

import time
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
        limits(made, "delay_s = 2")
        yield made


def limits(at: Site, line: str) -> None:
    """Say when b is sent what; its agreement is the last of the file."""
    text = at.file.read_text().split("# when")[0]
    at.file.write_text(f"{text}# when\n{line}\n")


def waits(at: Site, reason: str) -> bool:
    """Whether hub epochs wait for this reason, as `status` says."""
    waiting = agreement_of_b(at)["delayed"]
    return bool(waiting) and waiting["reason"] == reason


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
        hub.waits_for(lambda: not waits(two, "delay"), "b has all")

    limits(two, f"delay_s = {LONG_S}")
    with two.running(spark) as hub, agents(two, "ab"):
        execute(two, "a", "DELETE FROM t WHERE k = 'k'")
        hub.waits_for(lambda: waits(two, "delay"), "the delete waits")
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


@pytest.mark.more
def test_a_replica_is_sent_nothing_outside_its_hours_and_little_by_its_rate(
    two: Site, spark: SparkSession
) -> None:
    """What waits is shown with the reason; --now sends outside the hours; the rate holds."""
    hour = time.gmtime().tm_hour
    limits(two, f'hours = "{(hour + 2) % 24:02}:00-{(hour + 3) % 24:02}:00 UTC"')
    with two.running(spark) as hub, agents(two, "ab"):
        execute(two, "a", "INSERT INTO t VALUES ('k', 'v')")
        hub.waits_for(lambda: waits(two, "hours"), "the row waits")
        hub.waits_for(lambda: two.slackwater("level")["level"], "what waits is no lack")
        assert rows(two, "b") == {}
        two.slackwater("resume", "b", "--now")
        hub.waits_for(lambda: rows(two, "b") == {"k": "v"}, "what waited is sent at once")

    limits(two, "bytes_per_s = 100")
    with two.running(spark) as hub, agents(two, "ab"):
        execute(two, "a", "INSERT INTO t VALUES ('large', ?)", "x" * 600)
        hub.waits_for(lambda: "large" in rows(two, "b"), "the first row is sent")
        sent_s = time.monotonic()
        execute(two, "a", "INSERT INTO t VALUES ('small', 'y')")
        hub.waits_for(lambda: waits(two, "rate"), "the second waits")
        hub.waits_for(lambda: "small" in rows(two, "b"), "the second row is sent")
        assert time.monotonic() - sent_s > 3
        hub.waits_for(lambda: two.slackwater("level")["level"], "all are level")
