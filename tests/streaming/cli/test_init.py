"""Claims about `init`: what it checks, what it orders, whom it refuses."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from connectors.kafka.topics import ensure_topics
from streaming.core.model.statuses import Stop, StopReason
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.replica_state import ReplicaState
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.streaming.cli.conftest import CONFIG, Slackwater

KNOWN = ruv(r1=2)
NEW = AgreementState("to-b", 2)
ORDER = ("resync", json.dumps(["to-b", True, []]))


@pytest.fixture(autouse=True)
def updates(config_file: Path, broker: Broker, topic_prefix: str) -> str:
    """The topic from which b reads, on a real broker."""
    text = CONFIG.replace("localhost:9092", broker.bootstrap_servers)
    prefix = f'name = "centre"\ntopic_prefix = "{topic_prefix}"'
    config_file.write_text(text.replace('name = "centre"', prefix))
    name = f"{topic_prefix}updates.to-b"
    ensure_topics(broker.bootstrap_servers, {}, [name], 1_000)
    return name


@pytest.fixture
def joined(state: WrittenState) -> WrittenState:
    """A hub with three rows, one of them deleted, which has never heard of b."""
    commit(state, NEW)
    for number, image in ((1, "{}"), (2, "{}"), (3, None)):
        row = {
            "table": "t",
            "key": f'{{"id":{number}}}',
            "author": 1,
            "hub_epoch": 1,
            "image": image,
        }
        state.append(TableName.ROWS, row)
    return state


def commit(state: WrittenState, of_b: AgreementState, b: ReplicaState | None = None) -> None:
    """Commit hub epoch 3 with b as it is."""
    replicas = [replica(1, covers=3), b or ReplicaState(2)]
    state.commit(1, 3, KNOWN, replicas, [agreement("to-a", 1, 3, KNOWN), of_b], at_ms=1)


def asked(state: WrittenState) -> Sequence[tuple[str, str]]:
    """The commands that wait for the hub."""
    return [(c["command"], c["argument"]) for c in open_state(state.root).commands()]


def test_a_new_replica_is_ordered_a_copy_of_what_stands(
    slackwater: Slackwater, joined: WrittenState
) -> None:
    """A deleted row is no row of the copy; the order waits for the agent."""
    answer = slackwater("init", "b")

    assert answer.code == 0, answer.err
    assert "t: at most 2 rows" in answer.out
    assert "the copy begins when its agent is started" in answer.out
    assert asked(joined) == [ORDER]


def test_a_dry_run_orders_nothing(slackwater: Slackwater, joined: WrittenState) -> None:
    """Whoever plans the evening looks first."""
    answer = slackwater("init", "b", "--dry-run")

    assert (answer.code, asked(joined)) == (0, [])
    assert "Nothing is done yet" in answer.out


def test_it_is_ordered_once(slackwater: Slackwater, joined: WrittenState) -> None:
    """Asked twice by a nervous operator."""
    slackwater("init", "b")

    answer = slackwater("init", "b")

    assert "It is ordered already: start the agent of b." in answer.out
    assert asked(joined) == [ORDER]


def test_a_topic_that_forgets_before_the_copy_is_read_is_refused(
    slackwater: Slackwater, joined: WrittenState, broker: Broker, updates: str
) -> None:
    """The copy would have holes, which nobody sees; who knows better may force it."""
    resource = ConfigResource(
        ConfigResourceType.TOPIC, updates, configs={"retention.bytes": 1_000_000}
    )
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    client.alter_configs([resource])
    client.close()

    refused = slackwater("init", "b")

    assert (refused.code, asked(joined)) == (1, [])
    assert f"{updates} keeps 1000000 bytes" in refused.err
    assert slackwater("init", "b", "--force").code == 0
    assert asked(joined) == [ORDER]


@pytest.mark.parametrize(
    ("of_b", "b", "remedy"),
    [
        (agreement("to-b", 2, 2, KNOWN), replica(2, covers=2), "`slackwater resync to-b`"),
        (NEW, ReplicaState(2).stopped(Stop(StopReason.HUB_BEHIND), 7), "restore a newer one"),
        (
            NEW,
            ReplicaState(2).stopped(Stop(StopReason.OTHER_REPLICAGENERATION), 7),
            "belongs to another hub",
        ),
    ],
    ids=["behind", "ahead of the hub", "another initial load"],
)
def test_a_replica_that_is_not_new_is_told_what_fits(
    slackwater: Slackwater, state: WrittenState, of_b: AgreementState, b: ReplicaState, remedy: str
) -> None:
    """Uninitialised, behind and of another initial load are three things with three remedies."""
    commit(state, of_b, b)

    answer = slackwater("init", "b")

    assert (answer.code, asked(state)) == (1, [])
    assert remedy in answer.err


def test_wrong_usage_is_named(slackwater: Slackwater, joined: WrittenState) -> None:
    """The name that is wrong."""
    answer = slackwater("init", "nobody")

    assert (answer.code, asked(joined)) == (2, [])
    assert "there is no replica 'nobody'" in answer.err
