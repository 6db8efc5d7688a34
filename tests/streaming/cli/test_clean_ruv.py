"""Claims about `clean-ruv`: what it refuses, what it asks of the hub, who is waited for."""

from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from connectors import wire
from connectors.kafka.embedded.broker import Broker
from streaming.config.sources.load import load
from streaming.core.model.command import parse_readmit_order
from streaming.core.model.ruv import Ruv
from streaming.core.records.record import Heartbeat
from streaming.core.state.replica_state import ReplicaState
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.harness.topics import TopicEnds
from tests.streaming.cli.conftest import Answer, Slackwater
from tests.streaming.cli.test_level import now_ms
from tests.streaming.cli.test_retire import topics  # noqa: F401  # a fixture

KNOWN = ruv(r1=2, r2=2)
A_BLOCK = '[[replicas]]\nname = "a"\nrid = 1\n'
A_AGREEMENT = '[[agreements]]\nname = "to-a"\nconsumer = "a"\n'


def unconfigured(config_file: Path) -> None:
    """Take replica a out of the configuration."""
    text = config_file.read_text()
    for block in (A_BLOCK, A_AGREEMENT):
        assert block in text
        text = text.replace(block, "")
    config_file.write_text(text)


def commit(state: WrittenState, known: ReplicaState, acked: int = 3, hub_ruv: Ruv = KNOWN) -> None:
    """Commit hub epoch 3 with replica 1 as given; b has acknowledged up to a hub epoch."""
    one = agreement("to-a", 1, 3, KNOWN)
    gone = one.retired_for_good() if known.is_retired_for_good else one.retired()
    agreements = [gone if known.is_retired else one, agreement("to-b", 2, acked, KNOWN)]
    replicas = [known, replace(replica(2, covers=3), seen_ms=now_ms())]
    state.commit(1, 3, hub_ruv, replicas, agreements, at_ms=now_ms())


def asked(state: WrittenState) -> list[tuple[str, str]]:
    """The commands that wait for the hub."""
    return [(c["command"], c["argument"]) for c in open_state(state.root).commands()]


def refused(answer: Answer, why: str) -> None:
    """It says no, in one line."""
    assert (answer.code, why in answer.err) == (1, True), answer.err
    assert len(answer.err.splitlines()) == 1


def test_a_rid_that_is_configured_no_more_is_taken_out(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """By the same command of the hub as `retire`; without --yes it is only said."""
    commit(state, replica(1, covers=3).retired(), acked=2)
    unconfigured(config_file)

    said = slackwater("clean-ruv", "1")
    assert (said.code, asked(state)) == (0, [])
    assert "it leaves the RUV once to-b have all of that" in said.out
    assert "`slackwater clean-ruv 1 --yes` does it" in said.out

    facts = slackwater("clean-ruv", "1", "--yes", "--json").facts
    assert (facts["command"], facts["waits_for"]) == ("retire", ["to-b"])
    assert asked(state) == [("retire", "1")]


def test_what_its_agent_still_writes_is_counted(
    slackwater: Slackwater,
    state: WrittenState,
    config_file: Path,
    broker: Broker,
    topics: str,  # noqa: F811  # the fixture
) -> None:
    """Nobody reads it, so it would be gone for everybody else."""
    commit(state, replica(1, covers=3).retired())
    row = {"number": 1, "kind": "config", "document": load(config_file).document()}
    state.append(TableName.CONFIG, row)
    unconfigured(config_file)
    with TopicEnds(broker.bootstrap_servers) as ends:
        ends.send(f"{topics}changes.a", "a", wire.encode("s", Heartbeat(4)))

    facts = slackwater("clean-ruv", "1", "--json").facts
    answer = slackwater("clean-ruv", "1")

    assert (answer.code, facts["unread"], facts["why_unknown"]) == (0, 1, None)
    assert "1 record in its topic never read: what they hold is in its database only" in answer.out


def test_level_warns_of_what_nobody_reads(
    slackwater: Slackwater,
    state: WrittenState,
    config_file: Path,
    broker: Broker,
    topics: str,  # noqa: F811  # the fixture
) -> None:
    """A replica that was taken out of the file may have written what nobody got."""
    commit(state, replica(1, covers=3).retired())
    row = {"number": 1, "kind": "config", "document": load(config_file).document()}
    state.append(TableName.CONFIG, row)
    unconfigured(config_file)
    assert "nobody reads" not in slackwater("level").out
    with TopicEnds(broker.bootstrap_servers) as ends:
        ends.send(f"{topics}changes.a", "a", wire.encode("s", Heartbeat(4)))

    answer, facts = slackwater("level"), slackwater("level", "--json").facts

    assert facts["left_unread"] == [{"rid": 1, "replica": "a", "records": 1}]
    assert "1 record in the topic of a, which is configured no more, nobody reads" in answer.out


@pytest.mark.parametrize(
    ("rid", "why"),
    [
        ("65534", "rid 65534 is the hub's own"),
        ("1", "rid 1 is of a, which is configured: `slackwater retire a` takes it out"),
    ],
)
def test_a_rid_that_must_stay_is_refused(
    slackwater: Slackwater, state: WrittenState, rid: str, why: str
) -> None:
    """Each refusal says what to do instead."""
    commit(state, replica(1, covers=3))

    refused(slackwater("clean-ruv", rid, "--yes"), why)
    assert asked(state) == []


def test_a_rid_that_no_replica_has_is_a_wrong_name(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """A rid that was typed wrong is no answer."""
    commit(state, replica(1, covers=3))

    answer = slackwater("clean-ruv", "9", "--yes")

    assert (answer.code, asked(state)) == (2, [])
    assert "rid 9 is of no replica that this hub knows" in answer.err


def test_the_last_replica_is_refused(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """By both ways in; a hub without a replica is stopped."""
    replicas = [replica(1, covers=3), replica(2, covers=3).retired()]
    state.commit(1, 3, KNOWN, replicas, [agreement("to-a", 1, 3, KNOWN)], at_ms=now_ms())

    refused(slackwater("retire", "a", "--yes"), "a is the last replica that this hub has")

    both = [one.retired() for one in replicas]
    state.commit(2, 3, KNOWN, both, [agreement("to-a", 1, 3, KNOWN)], at_ms=now_ms())
    unconfigured(config_file)
    refused(slackwater("clean-ruv", "1", "--yes"), "the last replica that this hub has")
    assert asked(state) == []


def test_status_shows_who_a_leaving_rid_waits_for(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """And it is not given to a new replica before."""
    commit(state, replica(1, covers=3).retired_for_good(7), acked=2)
    waits = "rid 1 (a) leaves the RUV once hub epoch 3 is acknowledged: waiting for to-b"

    assert slackwater("status", "--json").facts["leaving"] == [
        {"rid": 1, "name": "a", "hub_epoch": 3, "waits_for": ["to-b"]}
    ]
    assert waits in " ".join(slackwater("status").out.split())
    refused(slackwater("clean-ruv", "1", "--readmit", "--yes"), waits)
    refused(slackwater("clean-ruv", "1"), waits)


def test_a_rid_that_has_left_is_given_to_a_new_replica(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """From the present end of its topic on, once it is configured again."""
    commit(state, replica(1, covers=3).retired_for_good(7), hub_ruv=ruv(r2=2))
    refused(slackwater("clean-ruv", "2", "--readmit"), "rid 2 was not taken out")
    refused(slackwater("clean-ruv", "1"), "rid 1 has left the RUV already")

    answer = slackwater("clean-ruv", "1", "--readmit", "--yes")

    assert (answer.code, "a gets rid 1 as a new replica" in answer.out) == (0, True)
    ((command, argument),) = asked(state)
    assert (command, parse_readmit_order(argument).rid) == ("readmit", 1)
    assert parse_readmit_order(argument).offset == 0
    unconfigured(config_file)
    refused(slackwater("clean-ruv", "1", "--readmit"), "rid 1 is not configured: add")
