"""A replica's topic loses what the hub had not read: it alone stops, and its operator is told."""

import contextlib
import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from checkpoints.tables import TableName
from connectors import wire
from connectors.kafka.embedded.broker import Broker
from connectors.kafka.topics import ensure_topics
from streaming.cli.main import main
from streaming.core.delivery.consumer import EndAgent, receive
from streaming.core.records.record import Stopped
from tests.harness import verdict
from tests.harness.hub_process import wait_until
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import RECORD_BYTES, RunningHub, Site, site_with_sessions

RECREATED = "input_lost: its topic was deleted and created again"


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with three replicas, all of which have sent a hello."""
    with site_with_sessions(tmp_path, broker.bootstrap_servers, topic_prefix, "abc") as made:
        yield made


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    """Whoever administers the cluster."""
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    yield client
    client.close()


def delete(admin: KafkaAdminClient, topic: str) -> None:
    """Delete a topic, and wait until it is gone."""
    admin.delete_topics([topic])
    wait_until(lambda: topic not in admin.list_topics(), lambda: f"{topic} is gone")


def recreate(admin: KafkaAdminClient, at: Site, topic: str) -> None:
    """Delete a topic and create it again as it was; the hub may do that at the same time."""
    delete(admin, topic)
    ensure_topics(at.ends.bootstrap, {}, [topic], RECORD_BYTES)


def cut(admin: KafkaAdminClient, topic: str, offset: int) -> None:
    """Let retention delete the records below this offset."""
    admin.delete_records({TopicPartition(topic, 0): offset})


def has_state(at: Site, name: str, state: str) -> None:
    """Wait until a replica has this state."""
    wait_until(lambda: at.replica_states()[name] == state, lambda: f"{at.replica_states()}")


def shown(at: Site, *arguments: str) -> tuple[int, str]:
    """The exit code of a command and what it prints for people."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*arguments, "--config", str(at.file)])
    return code, out.getvalue() + err.getvalue()


def stop_of(replica: ScriptedReplica) -> str:
    """Why the agent of this replica ends, by the last record that it was sent."""
    found = wire.decode_answer(replica.ends.read(replica.updates)[-1][1])
    assert isinstance(found, Stopped)
    outcome = receive(replica.position, found)
    assert isinstance(outcome, EndAgent)
    return outcome.why


def others_flow(at: Site, hub: RunningHub, key: str) -> None:
    """See a change of a and one of b come to both."""
    a, b = at.replicas["a"], at.replicas["b"]
    a.write(f"{key}-a", "of a")
    b.write(f"{key}-b", "of b")
    hub.takes(a, b)
    hub.brings(a, b)
    assert a.rows == b.rows == verdict.rows_of_changelog(at)


def told_and_recovered(at: Site, hub: RunningHub, state: str) -> None:
    """See what is said of c while it is lost; recover it; its next hello gets a full copy."""
    c = at.replicas["c"]
    has_state(at, "c", state)
    code, text = shown(at, "status")
    first = " ".join(text.split())
    assert code == 1
    assert first.startswith(f"problem: c is stopped: {state}; ")
    assert "`slackwater recover c`" in first
    assert shown(at, "level")[0] == 1
    assert state in stop_of(c)
    assert "slackwater recover" in stop_of(c)
    others_flow(at, hub, "lost")

    c.write("unread", "only here")
    assert shown(at, "recover", "c")[0] == 0
    has_state(at, "c", "recovered")
    assert shown(at, "recover", "c")[0] == 1
    wait_until(lambda: "start its agent" in stop_of(c), lambda: "c is told what is next")
    c.hello()
    hub.takes(c)
    hub.brings(c)
    others_flow(at, hub, "back")
    c.write("again", "of c")
    hub.takes(c)
    hub.brings(*at.replicas.values())
    assert at.replica_states() == dict.fromkeys("abc", "live")
    rows = verdict.rows_of_changelog(at)
    assert [one.rows for one in at.replicas.values()] == [rows] * 3, "all rows of c are overwritten"
    assert ("t", '{"k":"unread"}') not in rows
    kept = verdict.rows_of(at.state, TableName.QUARANTINE)
    assert [(row["reason"], row["key"]) for row in kept] == [("session", '{"k":"unread"}')]


def test_a_topic_that_is_deleted_stops_its_replica_alone(
    three: Site, spark: SparkSession, admin: KafkaAdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The hub creates it again, so that the agent finds one; what was in it is nobody's guess."""
    caplog.set_level(logging.INFO, "slackwater")
    c = three.replicas["c"]
    with three.running(spark) as hub:
        c.write("open", "half", inside="open")
        c.write("k", "of c")
        hub.brings(*three.replicas.values())

        delete(admin, c.changes)

        told_and_recovered(three, hub, RECREATED)
    lines = [one.getMessage() for one in caplog.records if one.name == "slackwater"]
    assert [one for one in lines if one.startswith("replica c: live ->")] == [
        f"replica c: live -> {RECREATED}"
    ]
    assert three.slackwater("status")["pending"]["pending"] == 0


@pytest.mark.slow
def test_a_topic_that_is_created_again_stops_its_replica_alone(
    three: Site, spark: SparkSession, admin: KafkaAdminClient
) -> None:
    """Also with more records than before: only its id tells that they are other ones."""
    c = three.replicas["c"]
    with three.running(spark) as hub:
        c.write("k", "of c")
        hub.takes(c)
        hub.brings(*three.replicas.values())

        recreate(admin, three, c.changes)
        for number in range(20):
            c.write(f"k{number}", "in another topic")
        has_state(three, "c", RECREATED)
        others_flow(three, hub, "lost")

    judged = {(row["rid"], row["key"]) for row in verdict.changes_of(three)}
    assert [key for rid, key in judged if rid == c.rid] == ['{"k":"k"}']


@pytest.mark.parametrize("records", [None, pytest.param(5, marks=pytest.mark.slow)])
def test_a_topic_that_is_deleted_while_no_hub_runs_stops_its_replica_alone(
    three: Site, spark: SparkSession, admin: KafkaAdminClient, records: int | None
) -> None:
    """The next start finds it, whoever created the topic again; `records`: what is in it then."""
    c = three.replicas["c"]
    three.run_available(spark)
    delete(admin, c.changes)
    if records is not None:
        ensure_topics(three.ends.bootstrap, {}, [c.changes], RECORD_BYTES)
        for number in range(records):
            c.write(f"k{number}", "in another topic")

    three.replicas["a"].write("k", "of a")
    three.run_available(spark)

    assert three.replica_states() == {"a": "live", "b": "live", "c": RECREATED}
    three.replicas["b"].catch_up()
    assert three.replicas["b"].rows == verdict.rows_of_changelog(three) != {}
    with three.running(spark) as hub:
        others_flow(three, hub, "lost")


@pytest.mark.more
def test_retention_is_a_loss_only_above_what_was_read(
    three: Site, spark: SparkSession, admin: KafkaAdminClient
) -> None:
    """What the hub has read may go; the first record that it has not read may not."""
    b, c = three.replicas["b"], three.replicas["c"]
    for number in range(4):
        b.write(f"b{number}", "of b")
        c.write(f"c{number}", "of c")
    three.run_available(spark)
    read = verdict.last_commit(three)["offsets"][c.changes]
    b.write("b-unread", "of b")
    c.write("c-lost", "of c")
    c.write("c-left", "of c")

    cut(admin, b.changes, read)
    cut(admin, c.changes, read + 1)
    three.run_available(spark)

    state = f"input_lost: offsets {read} to {read} of its topic were deleted before they were read"
    assert three.replica_states() == {"a": "live", "b": "live", "c": state}
    rows = verdict.rows_of_changelog(three)
    assert ("t", '{"k":"b-unread"}') in rows
    assert {("t", '{"k":"c-lost"}'), ("t", '{"k":"c-left"}')}.isdisjoint(rows)

    assert shown(three, "recover", "c")[0] == 0
    c.hello()
    with three.running(spark) as hub:
        hub.takes(c)
        hub.brings(c)  # what it writes before its full copy is there would be in conflict
        c.write("c-after", "of c")
        hub.takes(c)
        hub.brings(*three.replicas.values())

    rows = verdict.rows_of_changelog(three)
    assert three.replica_states()["c"] == "live"
    assert ("t", '{"k":"c-after"}') in rows
    assert [one.rows for one in three.replicas.values()] == [rows] * 3


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(FaultPoint.AFTER_PLAN, marks=pytest.mark.slow),
        pytest.param(FaultPoint.AFTER_CHANGELOG, marks=pytest.mark.slow),
        FaultPoint.BEFORE_COMMIT,
    ],
)
def test_a_planned_batch_whose_records_are_gone_is_finished_without_them(
    three: Site, spark: SparkSession, admin: KafkaAdminClient, point: FaultPoint
) -> None:
    """What the dead hub wrote of it was seen by nobody; the others' part of it is judged."""
    a, b, c = three.replicas.values()
    three.run_available(spark)
    a.write("k", "of a")
    c.write("lost", "of c")
    c.send_bytes(b"no record")
    three.dies(spark, point)

    recreate(admin, three, c.changes)
    for number in range(5):  # as many as before, and more: only the topic's id is another
        c.write(f"in-another-topic-{number}", "of c")
    b.write("later", "of b")
    three.run_available(spark)

    assert three.replica_states() == {"a": "live", "b": "live", "c": RECREATED}
    changes = verdict.rows_of(three.state, TableName.CHANGELOG)
    assert {row["key"] for row in changes} == {'{"k":"k"}', '{"k":"later"}'}
    assert verdict.rows_of(three.state, TableName.QUARANTINE) == []
    for replica in (a, b):
        replica.catch_up()
    assert a.rows == b.rows == verdict.rows_of_changelog(three)
    verdict.check_commits(three)


@pytest.mark.more
def test_what_was_sent_to_a_deleted_updates_topic_is_sent_again(
    three: Site, spark: SparkSession, admin: KafkaAdminClient
) -> None:
    """The consumer had not read it, and nothing that would show a gap follows."""
    a, b, c = three.replicas.values()
    with three.running(spark) as hub:
        hub.takes(a, b, c)
        hub.brings(a, b, c)
        a.write("k1", "unread by c")
        hub.takes(a)
        hub.brings(a, b)

        delete(admin, c.updates)
        wait_until(lambda: c.updates in admin.list_topics(), lambda: "it is there again")
        c.inbox = 0

        hub.brings(c)
        others_flow(three, hub, "on")
        hub.brings(c)
        assert c.sessions == 1
    assert three.replica_states() == dict.fromkeys("abc", "live")
    assert c.rows == verdict.rows_of_changelog(three)
    verdict.check(three)


@pytest.mark.more
def test_an_updates_topic_that_is_deleted_while_no_hub_runs_is_filled_again(
    three: Site, spark: SparkSession, admin: KafkaAdminClient
) -> None:
    """The hub had committed that it was sent; its consumer had read a part of it."""
    a, _, c = three.replicas.values()
    a.write("k1", "read by c")
    three.run_available(spark)
    c.catch_up()
    three.run_available(spark)
    a.write("k2", "unread by c")
    three.run_available(spark)
    a.write("k3", "not sent yet")

    recreate(admin, three, c.updates)
    c.inbox = 0
    three.run_available(spark)

    c.catch_up()
    assert c.rows == verdict.rows_of_changelog(three)
    assert len(c.rows) == 3
