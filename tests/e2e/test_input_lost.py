"""A replica's topic loses what the hub had not read: it alone stops, and its operator is told."""

import contextlib
import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition
from pyspark.sql import SparkSession

from checkpoints.tables import TableName
from connectors import wire
from connectors.kafka.broker import Broker
from connectors.kafka.topics import ensure_topics
from streaming.cli.main import main
from streaming.core.delivery.consumer import EndAgent, receive
from streaming.core.model.record import Hello, Stopped
from streaming.core.model.ruv import NOTHING_KNOWN
from tests.harness import verdict
from tests.harness.hub_process import wait_until
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import RECORD_BYTES, RunningHub, Site, site

RECREATED = "input_lost: its topic was deleted and created again"


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with three replicas, all of which have sent a hello."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc") as made:
        for replica in made.replicas.values():
            replica.hello()
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


def start_anew(replica: ScriptedReplica) -> None:
    """Say the hello of a database that was emptied by `slackwater reinit`."""
    replica.rows.clear()
    replica.position = type(replica.position)(f"{replica.name}-anew", epoch=replica.epoch)
    replica.epoch += 1
    replica.void.update(replica.open.values())
    replica.open.clear()
    replica.send(Hello(replica.position.epoch, 0, 0, NOTHING_KNOWN, None, lost=False, reinit=True))


def others_flow(at: Site, hub: RunningHub, key: str) -> None:
    """See a change of a and one of b come to both."""
    a, b = at.replicas["a"], at.replicas["b"]
    a.write(f"{key}-a", "of a")
    b.write(f"{key}-b", "of b")
    hub.takes(a, b)
    hub.brings(a, b)
    assert a.rows == b.rows == verdict.rows_of_changelog(at)


def told_and_recovered(at: Site, hub: RunningHub, state: str) -> None:
    """See what status, level and the agent say of c; recover it; see that it starts anew."""
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

    c.hello()
    c.write("unread", "by the old database")
    wait_until(lambda: c.session in str(at.updates("c")[-1]), lambda: "the new session is told")
    assert shown(at, "recover", "c")[0] == 0
    has_state(at, "c", "recovered")
    assert shown(at, "recover", "c")[0] == 1
    wait_until(lambda: "slackwater reinit" in stop_of(c), lambda: "c is told what is next")
    start_anew(c)
    hub.takes(c)
    hub.brings(c)
    others_flow(at, hub, "back")
    c.write("again", "of c")
    hub.takes(c)
    hub.brings(*at.replicas.values())
    assert at.replica_states() == dict.fromkeys("abc", "live")
    rows = verdict.rows_of_changelog(at)
    assert [one.rows for one in at.replicas.values()] == [rows] * 3
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
