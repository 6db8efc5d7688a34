"""What this version cannot do it refuses aloud: that replica stops, the others go on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from connectors.wire import decode_answer
from streaming.core.records.record import Stopped
from tests.harness import verdict
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import Site, site


@pytest.fixture
def four(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with four replicas."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abcd") as made:
        yield made


def say_what_stops(at: Site) -> dict[str, int]:
    """Let two replicas say a hello that the hub cannot take; replica -> its offset."""
    a, b = (at.replicas[name] for name in "ab")
    return {"a": a.hello(versions=(9,)), "b": b.hello(generation=9)}


STATES = {
    "a": "unsupported: wire version 9; this hub speaks 1",
    "b": "hub_behind",
    "c": "live",
    "d": "live",
}


def written(replica: ScriptedReplica, key: str) -> str:
    """The CSN of a fresh change in the replica's topic."""
    return replica.write(key, replica.name).csn


def test_a_replica_stops_where_it_asks_too_much(four: Site, spark: SparkSession) -> None:
    """Going on would mean a guess; what stands behind is there for a version that can do more."""
    everybody = four.replicas.values()
    for replica in everybody:
        replica.hello()
    before = {written(replica, f"before-{replica.name}") for replica in everybody}
    stopped_at = say_what_stops(four)
    behind = {replica.name: written(replica, f"behind-{replica.name}") for replica in everybody}
    four.run_available(spark)
    sent = {name: {id_ for id_, _ in four.updates(name)} for name in stopped_at}
    answers = {name: decode_answer(four.updates(name)[-1][1]) for name in stopped_at}
    assert {n: a.state for n, a in answers.items() if isinstance(a, Stopped)} == {
        name: STATES[name] for name in stopped_at
    }
    assert four.replica_states() == STATES

    later = {replica.name: written(replica, f"later-{replica.name}") for replica in everybody}
    four.run_available(spark)

    assert four.replica_states() == STATES
    judged = {row["csn"] for row in verdict.rows_of(four.state, TableName.CHANGELOG)}
    assert judged == {*before, *(one[name] for one in (behind, later) for name in "cd")}
    commit = verdict.last_commit(four)
    offsets = {name: commit["offsets"][four.replicas[name].changes] for name in stopped_at}
    assert offsets == stopped_at
    assert sent == {name: {id_ for id_, _ in four.updates(name)} for name in stopped_at}
    for name in "cd":
        four.replicas[name].catch_up()
        assert four.replicas[name].rows == verdict.rows_of_changelog(four)
