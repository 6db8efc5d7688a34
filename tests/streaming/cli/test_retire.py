"""Claims about `retire`: what it says beforehand, what it asks of the hub, who is level then."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from connectors import wire
from connectors.kafka.embedded.broker import Broker
from connectors.kafka.topics import ensure_topics
from streaming.core.records.record import Heartbeat
from streaming.core.state.replica_state import ReplicaState
from tests.checkpoints.written_state import WrittenState, agreement, change_row, replica, ruv
from tests.harness.builders import csn
from tests.harness.topics import TopicEnds
from tests.streaming.cli.conftest import CONFIG, Slackwater
from tests.streaming.cli.test_level import now_ms

KNOWN = ruv(r1=2, r2=2)
RETIRED = replica(1, covers=3).retired_for_good(7)


@pytest.fixture(autouse=True)
def topics(config_file: Path, broker: Broker, topic_prefix: str) -> str:
    """The hub's topics on a real broker; the prefix of their names."""
    text = CONFIG.replace("localhost:9092", broker.bootstrap_servers)
    prefix = f'name = "centre"\ntopic_prefix = "{topic_prefix}"'
    config_file.write_text(text.replace('name = "centre"', prefix))
    names = [f"{topic_prefix}changes.{name}" for name in "ab"]
    ensure_topics(broker.bootstrap_servers, {}, names, 1_000)
    return topic_prefix


def commit(state: WrittenState, batch: int, *replicas: ReplicaState) -> None:
    """Commit hub epoch 3; b has acknowledged hub epoch 2, without a's second change."""
    agreements = [agreement("to-a", 1, 3, KNOWN), agreement("to-b", 2, 2, ruv(r1=1, r2=2))]
    if replicas[0].is_retired:
        agreements = [agreements[0].retired_for_good(), agreement("to-b", 2, 3, KNOWN)]
    state.commit(batch, 3, KNOWN, replicas, agreements, at_ms=now_ms())


def asked(state: WrittenState) -> Sequence[tuple[str, str]]:
    """The commands that wait for the hub."""
    return [(c["command"], c["argument"]) for c in open_state(state.root).commands()]


def test_retire_says_first_what_is_there_and_what_is_gone(
    slackwater: Slackwater, state: WrittenState, broker: Broker, topics: str
) -> None:
    """It cannot be taken back, so nothing happens without --yes."""
    commit(state, 1, replica(1, covers=3), replica(2, covers=3))
    state.append(TableName.CHANGELOG, change_row(1, 3, 0, csn(2, 1)))
    with TopicEnds(broker.bootstrap_servers) as ends:
        for epoch in (1, 2):
            ends.send(f"{topics}changes.a", "a", wire.encode("s", Heartbeat(epoch)))

    facts = slackwater("retire", "a", "--json").facts
    answer = slackwater("retire", "a")

    assert (facts["unread"], facts["lacking"], facts["number"]) == (2, {"b": 1}, None)
    assert answer.code == 0
    assert "2 records in its topic never read: gone" in answer.out
    assert "b lacks 1 change of it: the hub sends them" in answer.out
    assert "Nothing is done yet" in answer.out
    assert asked(state) == []

    assert "command 1" in slackwater("retire", "a", "--yes").out
    assert asked(state) == [("retire", "1")]


def test_the_others_are_level_without_it(slackwater: Slackwater, state: WrittenState) -> None:
    """`level` asks nothing of the dead; `status` says what is left to do."""
    commit(state, 1, RETIRED, replica(2, covers=3, seen_ms=now_ms()))

    level, status = slackwater("level", "--json"), slackwater("status", "--json")

    assert (level.code, [a["name"] for a in level.facts["agreements"]]) == (0, ["to-b"])
    problem = next(p for p in status.facts["problems"] if "is stopped" in p["what"])
    assert problem["what"] == "a is stopped: retired: for good"
    assert "remove it from the configuration" in problem["remedy"]
    again = slackwater("retire", "a")
    assert (again.code, again.err) == (
        1,
        "slackwater: a is retired already: remove it from the configuration\n",
    )


def test_status_is_content_when_it_is_no_longer_configured(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """Its state is kept and shown, and needs nobody."""
    commit(state, 1, RETIRED, replace(replica(2, covers=3), seen_ms=now_ms()))
    text = config_file.read_text()
    for block in ('[[replicas]]\nname = "a"\nrid = 1\n', '[[agreements]]\nname = "to-a"\n'):
        assert block in text
        text = text.replace(block, "")
    config_file.write_text(text.replace('consumer = "a"\n', ""))

    found = slackwater("status", "--json").facts

    assert {one["rid"]: one["state"] for one in found["replicas"]}[1] == "retired: for good"
    assert not [one for one in found["problems"] if "retired" in one["what"]]
