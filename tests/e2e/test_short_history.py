"""A hub that keeps its history for seconds: what all have goes; who was away too long returns."""

import itertools
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from checkpoints.maintenance import background
from checkpoints.query import select
from checkpoints.reading.reader import open_state
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from streaming.core.model.errors import HubError
from streaming.core.state.hub_state import HubState
from streaming.hub.service import Service
from tests.e2e.test_consumers_away import AWAY, are_equal, comes_to, delete, resync_of, write
from tests.harness.agents_of_kinds import agents, at_work, captures, create, rows
from tests.harness.hub_process import TIMEOUT_S
from tests.harness.site import RunningHub, Site, site, site_with_sessions
from tests.harness.sqlite_agents import kill
from tests.model.hub import HubKilledError

KEEP_S, MAX_AWAY_S = 2, 8
KEPT_EPOCHS = 3
SETTINGS = {
    "RETENTION__KEEP_H": KEEP_S / 3_600,
    "RETENTION__MAX_AWAY_H": MAX_AWAY_S / 3_600,
    "LIMITS__MATERIALIZE_EVERY_S": 1,
    "HUB__ACK_TIMEOUT_S": 2,
}


@pytest.fixture
def short_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the hubs of a test keep their history for seconds."""
    for name, value in SETTINGS.items():
        monkeypatch.setenv(f"SLACKWATER_{name}", str(value))


def state_of(at: Site) -> HubState:
    """The state after the last commit."""
    commit = open_state(at.state).commit
    assert commit is not None
    return commit.state


def rows_epoch(at: Site) -> int:
    """Up to where `rows` is brought, as the last commit names it."""
    commit = open_state(at.state).commit
    return commit.rows_epoch if commit else 0


def logged(at: Site) -> list[int]:
    """The hub epochs of the changelog, an entry each."""
    found: list[int] = StateStore(at.state).read(TableName.CHANGELOG)["hub_epoch"].to_pylist()
    return sorted(found)


def is_purged(at: Site) -> bool:
    """Whether the tables hold no more than the newest commit says."""
    state = state_of(at)
    batches = StateStore(at.state).read(TableName.EPOCHS)["batch"].to_pylist()
    oldest = min((batch for batch in batches if batch), default=0)
    spared = {one.min_csn for ruv in state.ruvs.values() for one in ruv.elements.values()}
    log = StateStore(at.state).read(TableName.CHANGELOG).to_pylist()
    old = [row for row in log if row["hub_epoch"] <= state.purge_epoch]
    return oldest >= state.purge_batch > 0 and all(row["csn"] in spared for row in old)


def tombstones(at: Site) -> int:
    """How many `rows` holds."""
    found = select(StateStore(at.state).table(TableName.ROWS), TableName.ROWS, columns=["image"])
    return int(found["image"].null_count)


def purges_up_to(at: Site, hub: RunningHub, hub_epoch: int) -> None:
    """Wait until the hub has purged so far, and nothing of that is there."""
    hub.waits_for(lambda: state_of(at).purge_epoch >= hub_epoch, f"purged up to {hub_epoch}")
    hub.waits_for(lambda: is_purged(at), "what is purged is deleted")


def dies(at: Site, spark: SparkSession, fatal: FaultPoint) -> None:
    """Let a hub in this process work until it comes there."""
    end = threading.Event()

    def reach(point: FaultPoint) -> None:
        if point is fatal:
            raise HubKilledError

    guard = threading.Timer(TIMEOUT_S, end.set)  # a hub that never comes there ends in order
    guard.start()
    try:
        with pytest.raises((HubKilledError, HubError), match=r"^$|HubKilledError"):
            Service(at.config(), spark, reach).run(end)
    finally:
        guard.cancel()


@pytest.mark.more
@pytest.mark.usefixtures("short_history")
def test_a_consumer_that_was_away_too_long_gets_a_full_copy(
    tmp_path: Path,
    broker: Broker,
    topic_prefix: str,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until then the purge waits for it; a hub that dies over a purge repeats it."""
    monkeypatch.setattr(background, "TOMBSTONES_EVERY_S", 1)
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc") as three:
        for name in "abc":
            create(three, name)
        with three.running(spark) as hub, agents(three, "ab"), at_work(three, "c") as gone:
            hub.waits_for(lambda: captures(three, "c"), "c is captured")
            write(three, "a", range(200), "first")
            are_equal(three, hub, "abc")
            first = state_of(three).hub_epoch
            purges_up_to(three, hub, first - 1)
            kill(gone)
            write(three, "a", range(100), "second")
            delete(three, "a", 0, 10)
            comes_to(three, hub, "c", AWAY)
            acked = state_of(three).agreements["c"].acked_covers
            write(three, "b", range(100, 300), "third")
            hub.waits_for(lambda: rows(three, "a") == rows(three, "b"), "a and b are equal")
            assert state_of(three).purge_epoch <= acked
            purges_up_to(three, hub, acked + 1)
            assert state_of(three).agreements["c"].is_full
            hub.waits_for(lambda: not tombstones(three), "the tombstones are purged")
        with three.running(spark) as hub:
            write(three, "c", range(5, 15), "of c")  # some are deleted, some newer
            write(three, "c", range(400, 500), "of c")
            with agents(three, "abc"):
                are_equal(three, hub, "abc")
                assert resync_of(three, "c") == {}
                assert f"{5:05}" not in rows(three, "c")
                assert rows(three, "a")[f"{450:05}"] == "of c"


@pytest.mark.more
@pytest.mark.usefixtures("short_history")
def test_a_hub_that_dies_over_a_purge_repeats_it(
    tmp_path: Path,
    broker: Broker,
    topic_prefix: str,
    spark: SparkSession,
) -> None:
    """Between its commit and what is deleted, and behind that; what is left is sound."""
    with site_with_sessions(tmp_path, broker.bootstrap_servers, topic_prefix) as pair:
        a, b = pair.replicas.values()
        with pair.running(spark) as hub:
            numbers = itertools.count()
            while rows_epoch(pair) < KEPT_EPOCHS:  # a commit names it: who writes nothing has none
                a.write(f"k{next(numbers)}", "first")
                hub.brings(a, b)
        before = logged(pair)
        dies(pair, spark, FaultPoint.BEFORE_PURGE)
        assert state_of(pair).purge_epoch
        assert logged(pair) == before
        dies(pair, spark, FaultPoint.AFTER_PURGE)
        assert is_purged(pair)
        with pair.running(spark) as hub:
            b.write("k1", "second")
            hub.takes(b)
            hub.brings(a, b)
        epoch = state_of(pair).purge_epoch
        assert a.rows == b.rows
        assert min(logged(pair)) > min(before)  # a slow hub has purged less than it wrote since
        assert pair.slackwater("verify")["sound"]
        with pytest.raises(AssertionError, match=r"the oldest one that can be"):
            pair.slackwater("rows", "t", "--as-of", str(epoch - 1))


@pytest.mark.more
@pytest.mark.usefixtures("short_history")
def test_a_hub_at_rest_purges_all_and_then_plans_no_batch(
    tmp_path: Path,
    broker: Broker,
    topic_prefix: str,
    spark: SparkSession,
) -> None:
    """Nobody says anything any more: the last change of each replica is what is left."""
    with site_with_sessions(tmp_path, broker.bootstrap_servers, topic_prefix) as pair:
        a, b = pair.replicas.values()
        with pair.running(spark) as hub:
            for key in ("k1", "k2", "k3"):
                a.write(key, "first")
                hub.brings(a, b)
            newest = state_of(pair).hub_epoch
            purges_up_to(pair, hub, newest)
            hub.waits_for(lambda: len(logged(pair)) == 1, "the last change alone is left")
            hub.waits_for(lambda: is_quiet(pair), "no batch comes any more")
            a.write("k4", "second")
            hub.takes(a)
            hub.brings(a, b)
        assert a.rows == b.rows
        assert pair.slackwater("verify")["sound"]


@pytest.mark.more
@pytest.mark.usefixtures("short_history")
def test_a_hub_that_is_started_now_and_then_purges_each_time(
    tmp_path: Path,
    broker: Broker,
    topic_prefix: str,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends with its input, but not before what it found is deleted."""
    often = {"LIMITS__MATERIALIZE_EVERY_EPOCHS": 1, "HUB__ACK_TIMEOUT_S": TIMEOUT_S}
    for name, value in often.items():
        monkeypatch.setenv(f"SLACKWATER_{name}", str(value))
    with site_with_sessions(tmp_path, broker.bootstrap_servers, topic_prefix) as pair:
        a, b = pair.replicas.values()
        keys = ["k1", "k2", "k3", *[None] * KEPT_EPOCHS]
        for key in keys:
            if key is not None:
                a.write(key, "first")
            pair.run_available(spark)
            assert state_of(pair).purge_batch == 0 or is_purged(pair)
            a.catch_up()
            b.catch_up()
            time.sleep(KEEP_S)
        pair.run_available(spark)

        assert state_of(pair).purge_epoch == state_of(pair).hub_epoch
        assert len(logged(pair)) == 1


def is_quiet(at: Site) -> bool:
    """Whether no batch comes for longer than a purge would wait for one."""
    before = state_of(at).batch
    time.sleep(4 * KEEP_S)
    return state_of(at).batch == before
