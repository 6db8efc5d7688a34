"""Claims about batches of heartbeats alone, of which a quiet hub has thousands a day."""

from pathlib import Path

import pyarrow as pa
import pytest

from checkpoints.commit.epochs import Plan
from checkpoints.commit.recorded import batch_marks, from_store
from checkpoints.reading.past import PastStore
from checkpoints.tables import TableName
from streaming.carriers.carrier import DriverCarrier
from streaming.core.records.record import Heartbeat
from streaming.core.replay.span import span_of
from streaming.core.state.hub_state import HubState
from streaming.hub.batch.hub import Hub
from streaming.hub.batch.pipeline import decide
from streaming.hub.batch.publishing import DecidedBatch
from streaming.replay import run
from streaming.replay.configured import ConfigsThen
from tests.model.language import play
from tests.model.local_hub import local_hubs
from tests.streaming.cli.conftest import Slackwater
from tests.streaming.replay.conftest import History

STORY = """
given r1 r2; t is EPOCH

r1 writes k = w1
r1 publishes
the hub takes all
everything settles
"""
BEATS = 8


@pytest.fixture
def history(tmp_path: Path) -> History:
    """A hub that took a change, eight heartbeats in batches of their own, and another change.

    Each says another number of what is not published.
    """
    world = play(STORY, local_hubs(tmp_path))
    for number in range(BEATS):
        name = list(world.replicas)[number % 2]
        world.now_s += 6
        one = world.replicas[name]
        world.send(name, one.position.session, Heartbeat(one.epoch, number // 2))
        world.take()
    world.run_until_quiet()
    return History(tmp_path)


def states(history: History) -> list[HubState]:
    """The hub behind each batch, as replay comes to it."""
    store = PastStore(history.state)
    marks = batch_marks(store)
    span = span_of(marks, None, None, lambda _: None)
    replay = run.replay_from(store, ConfigsThen(store), span)
    found = list[HubState]()
    for one in replay.batches(from_store(store), marks[-len(marks) + span.first - 1 :]):
        assert one.differences == []
        found.append(replay.hub.state)
    store.close()
    return found


def test_replay_comes_to_the_same_with_and_without_deciding_them(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The short way says what a heartbeat does; the hub's own decision says it too."""
    short = states(history)
    monkeypatch.setattr(run, "state_after_rest", lambda *_: None)

    assert states(history) == short
    assert len(short) > BEATS


def test_an_audit_decides_only_what_was_no_heartbeat(
    history: History, slackwater: Slackwater, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub that is idle for a day makes 14,400 such batches, and an audit would take an hour."""
    decided = list[int]()

    def counted(hub: Hub, plan: Plan, carrier: DriverCarrier) -> DecidedBatch:
        decided.append(plan.batch)
        return decide(hub, plan, carrier)

    monkeypatch.setattr("streaming.replay.run.decide", counted)

    answer = slackwater("verify", "--config", str(history.folder / "hub.toml"), "--json")

    batches = len(history.rows(TableName.EPOCHS)) // 2
    assert answer.code == 0, answer.err
    assert answer.facts["sound"]
    assert len(decided) <= batches - BEATS


def test_a_heartbeat_that_is_recorded_otherwise_is_found(
    history: History, slackwater: Slackwater
) -> None:
    """The short way is taken where both agree; what differs is decided, and shown."""
    events = history.rows(TableName.EVENTS).to_pylist()
    for row in events:
        if row["kind"] == "heartbeat":
            row["value"] = row["value"].replace('"epoch":', '"epoch":9')
    schema = history.rows(TableName.EVENTS).schema
    history.rewrite(TableName.EVENTS, pa.Table.from_pylist(events, schema=schema))

    answer = slackwater("verify", "--config", str(history.folder / "hub.toml"), "--json")

    assert not answer.facts["sound"]
    assert {one["check"] for one in answer.facts["found"]} == {"fact"}
