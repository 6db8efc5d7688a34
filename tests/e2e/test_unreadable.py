"""A changes topic that the hub may not read: its replica alone waits, and goes on by itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.admin import ACLOperation
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from connectors.kafka.embedded.broker import Broker
from tests.harness import verdict
from tests.harness.commits import last_commit
from tests.harness.hub_process import wait_until
from tests.harness.replays import check_audit_is_sound, check_replay_is_equal
from tests.harness.rights import allow_all, deny
from tests.harness.site import RunningHub, Site, site_with_sessions

HIDDEN = (ACLOperation.READ, ACLOperation.DESCRIBE)
"""Without any right on a topic Kafka does not even say whether it is there."""


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with three replicas, all of which have sent a hello."""
    with site_with_sessions(tmp_path, broker.bootstrap_servers, topic_prefix, "abc") as made:
        yield made


def unreadable(at: Site) -> dict[str, str]:
    """Replica -> what Kafka refuses, as `slackwater status` shows it."""
    shown = at.slackwater("status")["replicas"]
    return {one["name"]: one["unreadable"] for one in shown if one["unreadable"]}


def becomes_unreadable(at: Site, *names: str) -> None:
    """Wait until the hub has found out that it may not read the topics of these, and no others."""
    wait_until(lambda: unreadable(at).keys() == {*names}, lambda: f"{unreadable(at)}")


def others_flow(at: Site, hub: RunningHub, key: str) -> None:
    """See a change of b come to c."""
    b, c = at.replicas["b"], at.replicas["c"]
    b.write(key, "of b")
    hub.takes(b)
    hub.brings(c)
    assert c.rows == verdict.rows_of_changelog(at)


@pytest.mark.more
def test_a_topic_that_may_not_be_read_stops_its_replica_alone(
    three: Site, spark: SparkSession
) -> None:
    """One right that somebody mistyped must not stop a whole site, nor need a restart."""
    a, bootstrap = three.replicas["a"], three.ends.bootstrap
    with three.running(spark) as hub:
        hub.takes(*three.replicas.values())
        deny(bootstrap, a.changes, ACLOperation.READ)
        a.write("while-denied", "of a")
        becomes_unreadable(three, "a")
        others_flow(three, hub, "read-denied")

        status, level = three.slackwater("status"), three.slackwater("level")
        assert f"User:ANONYMOUS Read on topic {a.changes}" in unreadable(three)["a"]
        assert any("a is unreadable" in one["what"] for one in status["problems"])
        assert any("`slackwater acls`" in one["remedy"] for one in status["problems"])
        assert not level["level"]
        assert any(one.startswith("a is unreadable") for one in level["cannot_say"])

        allow_all(bootstrap, a.changes)
        hub.takes(a)
        becomes_unreadable(three)
        deny(bootstrap, a.changes, *HIDDEN)
        becomes_unreadable(three, "a")
        others_flow(three, hub, "hidden")
    with three.running(spark) as hub:
        others_flow(three, hub, "started-hidden")
        allow_all(bootstrap, a.changes)
        a.write("again", "of a")
        hub.takes(a)
        hub.brings(*three.replicas.values())
        for replica in three.replicas.values():
            assert replica.rows == verdict.rows_of_changelog(three)


def test_a_planned_batch_leaves_what_may_not_be_read(three: Site, spark: SparkSession) -> None:
    """The hub that planned it died, and the next one has lost the right to what it planned."""
    three.run_available(spark)
    before = last_commit(three.state)
    assert before is not None
    for name, replica in three.replicas.items():
        replica.write(f"of-{name}", name)
    three.dies(spark, FaultPoint.BEFORE_COMMIT)
    a = three.replicas["a"]
    deny(three.ends.bootstrap, a.changes, ACLOperation.READ)

    three.run_available(spark)

    after = last_commit(three.state)
    assert after is not None
    moved = {t for t, end in after.offsets.items() if end > before.offsets[t]}
    assert moved == {three.replicas[name].changes for name in "bc"}
    allow_all(three.ends.bootstrap, a.changes)
    three.run_available(spark)
    assert len(verdict.rows_of_changelog(three)) == len("abc")
    check_replay_is_equal(three.state)
    check_audit_is_sound(three.state)
