"""Two hubs on one state, input that comes twice, a broker that goes away: all end level."""

import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from streaming.core.model.errors import OvertakenError, SourceError, StateError
from streaming.core.records.record import Item
from streaming.hub.service import Service
from tests.harness import verdict
from tests.harness.hub_process import TIMEOUT_S, HubProcess
from tests.harness.site import Site, site
from tests.reference.wire import decode_update

OVERTAKEN = "another hub works on the state"


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas that have sent a hello."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        greet(made)
        yield made


def greet(at: Site) -> None:
    """Start the sessions of all replicas."""
    for replica in at.replicas.values():
        replica.hello()


def collide(at: Site, label: str) -> None:
    """Write rows of one's own and a contended one, at every replica."""
    for name, replica in at.replicas.items():
        for number in range(3):
            replica.write(f"{name}{number}", label)
        replica.write("contended", f"{name} {label}")


def finish(at: Site) -> None:
    """Let the replicas apply what is there, and hold everything against everything."""
    for replica in at.replicas.values():
        replica.catch_up()
    verdict.check(at)


def test_hub_that_was_overtaken_after_its_plan(pair: Site, spark: SparkSession) -> None:
    """It cannot know that it stood still: what it writes then must fail or be there already."""
    collide(pair, "first")
    with pair.hub("--available-now", fault="stop:after_plan") as hub:
        hub.is_stopped_after("its plan")
        pair.run_available(spark)
        collide(pair, "second")
        pair.run_available(spark)
        sent = {name: pair.updates(name) for name in pair.replicas}

        hub.go_on()

        assert OVERTAKEN in hub.ends_with(1)
    assert sent == {name: pair.updates(name) for name in pair.replicas}
    finish(pair)


@pytest.mark.more
def test_hub_that_was_overtaken_after_its_commit(pair: Site, spark: SparkSession) -> None:
    """It publishes its old batch behind newer ones: consumers skip it, and it gets no further."""
    collide(pair, "first")
    with pair.hub(fault="stop:after_commit") as hub:
        hub.is_stopped_after("its commit")
        pair.run_available(spark)
        collide(pair, "second")
        pair.run_available(spark)
        finish(pair)
        collide(pair, "third")

        hub.go_on()

        assert OVERTAKEN in hub.ends_with(1)
    pair.run_available(spark)
    finish(pair)


@pytest.mark.slow
def test_two_hubs_at_once(pair: Site, spark: SparkSession) -> None:
    """Whichever plans first goes on; the other exits and reports why.

    A second hub may find everything done: it comes again until both want the same batch.
    """
    with pair.hub() as first:
        collide(pair, "for the first")
        first.waits_for(lambda: all(pair.updates(name) for name in pair.replicas), "it publishes")
        second_lost, deadline = False, time.monotonic() + TIMEOUT_S
        while first.runs() and not second_lost:
            assert time.monotonic() < deadline, "the two hubs never wanted the same batch"
            with writing(pair):
                second_lost = loses(pair, spark)

        if second_lost:
            first.terminate()
            first.ends_with(0)
        else:
            assert OVERTAKEN in first.ends_with(1)
    pair.run_available(spark)
    finish(pair)


@contextmanager
def writing(at: Site) -> Iterator[None]:
    """The replicas write without a pause while the block runs."""
    end = threading.Event()

    def write() -> None:
        while not end.is_set():
            collide(at, "for either")

    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(write)
        try:
            yield
        finally:
            end.set()
        work.result()


def loses(at: Site, spark: SparkSession) -> bool:
    """Let a hub in this process work off what is there: whether another one was faster."""
    try:
        at.run_available(spark)
    except OvertakenError:
        return True
    return False


def test_batch_delivered_twice(pair: Site, spark: SparkSession) -> None:
    """A replica publishes everything again: nothing is judged or answered twice."""
    a = pair.replicas["a"]
    a.publish(a.change("k", "v")._replace(table="nobody's"))
    collide(pair, "first")
    pair.run_available(spark)
    finish(pair)
    pair.run_available(spark)
    before = verdict.last_commit(pair)

    repeated = 0
    for replica in pair.replicas.values():
        for _, value in pair.ends.read(replica.changes):
            replica.send_bytes(value)
            repeated += b'"kind":"change"' in value or b'"kind":"hello"' in value
    pair.run_available(spark)

    after = verdict.last_commit(pair)
    assert after["totals"]["duplicates"] == repeated
    assert (after["hub_epoch"], after["ruv"]) == (before["hub_epoch"], before["ruv"])
    finish(pair)


@pytest.fixture
def own_broker(tmp_path: Path, topic_prefix: str) -> Iterator[tuple[Path, Site]]:
    """A hub with two replicas and a broker of its own, with the broker's folder."""
    folder = tmp_path / "broker"
    with (
        Broker.start(folder) as running,
        site(tmp_path, running.bootstrap_servers, topic_prefix) as made,
    ):
        made.gives_up_soon()
        greet(made)
        yield folder, made
        again = Broker.running(folder)
        if again:
            again.stop()


def published(hub: HubProcess, at: Site) -> None:
    """Wait until every replica has applied the last change of the other."""
    a, b = at.replicas.values()
    last = [(b, a.published[-4]), (a, b.published[-4])]  # a row of its own, its last but one

    def has_come() -> bool:
        for replica, _ in last:
            replica.catch_up()
        return all(replica.rows.get(change.row) == change.after for replica, change in last)

    hub.waits_for(has_come, "both replicas have what the other wrote")


def items(at: Site, name: str) -> list[Item]:
    """Everything that was ever sent to a replica."""
    return [item for _, value in at.updates(name) for item in decode_update(value).rows]


def test_broker_away_and_orderly_end(own_broker: tuple[Path, Site], spark: SparkSession) -> None:
    """A hub waits for its broker; stopped, it publishes what it has read and exits with 0.

    The broker dies when changes are on their way: a batch is committed and not published, and what
    was written behind it is not read.
    """
    folder, pair = own_broker
    collide(pair, "on the way")
    with pair.hub(fault=f"stop:{FaultPoint.AFTER_COMMIT}") as hub:
        hub.is_stopped_after("the commit of changes")
        collide(pair, "not read")
        broker = Broker.running(folder)
        assert broker is not None
        assert verdict.last_commit(pair)["hub_epoch"] > 0
        assert not any(items(pair, name) for name in pair.replicas)

        broker.kill()
        hub.go_on()
        hub.waits_for(lambda: "no answer from Kafka" in hub.output, "it misses its broker")
        Broker.start(folder)
        collide(pair, "after")
        published(hub, pair)
        collide(pair, "while it ends")
        hub.terminate()
        hub.ends_with(0)

    commit = verdict.last_commit(pair)
    for agreement in commit["agreements"]:
        replica = pair.replicas[agreement["name"]]
        replica.catch_up()
        assert agreement["scanned"] == commit["hub_epoch"]
        assert replica.position.covers == agreement["sent_covers"]
    pair.run_available(spark)
    finish(pair)
    for replica in pair.replicas.values():
        verdict.check_level(replica, pair)


def test_disk_that_takes_nothing_any_more(pair: Site, spark: SparkSession) -> None:
    """The hub reports in one sentence what is wrong, and continues once it is repaired."""
    changelog = pair.state / TableName.CHANGELOG
    collide(pair, "first")

    def breaks(point: FaultPoint) -> None:
        if point is FaultPoint.AFTER_PLAN:
            changelog.rename(pair.folder / "aside")
            changelog.write_text("no folder")

    with pytest.raises(StateError, match="check its disk") as told:
        Service(pair.config(), spark, breaks).run(threading.Event(), available_now=True)
    changelog.unlink()
    (pair.folder / "aside").rename(changelog)

    assert str(pair.state) in str(told.value)
    assert "\n" not in str(told.value)
    pair.run_available(spark)
    finish(pair)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("", id="idle", marks=pytest.mark.slow),
        pytest.param(f"stop:{FaultPoint.AFTER_PLAN}", id="in a batch"),
    ],
)
def test_java_that_is_killed(pair: Site, spark: SparkSession, fault: str) -> None:
    """Half a hub is none: it exits and reports what is missing, and the next one continues."""
    collide(pair, "first")
    with pair.hub(fault=fault) as hub:
        if fault:
            hub.is_stopped_after("its plan")
        else:
            published(hub, pair)

        hub.kill_java()
        hub.go_on()

        received = hub.ends_with(1)
    assert "slackwater: Spark's Java process is gone" in received
    assert "disk" not in received
    collide(pair, "second")
    pair.run_available(spark)
    finish(pair)


def test_a_hub_refuses_topics_to_which_another_one_sends(
    pair: Site, spark: SparkSession, tmp_path: Path
) -> None:
    """A copied hub.toml is enough for that; the consumers could not follow two hubs."""
    collide(pair, "first")
    pair.run_available(spark)
    sent = {name: len(pair.updates(name)) for name in pair.replicas}
    other = Site(tmp_path / "other", pair.prefix, pair.ends, pair.replicas)
    other.folder.mkdir()
    other.file.write_text(pair.file.read_text())

    with pytest.raises(SourceError, match="updates that this hub did not write") as told:
        other.run_available(spark)

    assert all(
        f"{pair.prefix}updates.{name} ({n} records)" in str(told.value) for name, n in sent.items()
    )
    assert "hub.topic_prefix" in str(told.value)
    assert {name: len(pair.updates(name)) for name in pair.replicas} == sent
    finish(pair)


def test_a_state_that_is_put_back_is_refused(pair: Site, spark: SparkSession) -> None:
    """Going on from it would number other batches with hub epochs that consumers have."""
    collide(pair, "first")
    pair.run_available(spark)
    backup = pair.folder / "backup"
    shutil.copytree(pair.state, backup)
    collide(pair, "second")
    pair.run_available(spark)
    sent = {name: pair.updates(name) for name in pair.replicas}
    epochs = verdict.last_commit(pair)["hub_epoch"]
    newest = pair.folder / "newest"
    pair.state.rename(newest)
    backup.rename(pair.state)

    with pytest.raises(StateError, match="an older state was restored") as told:
        pair.run_available(spark)

    assert f"{pair.prefix}updates.a holds hub epoch {epochs}" in str(told.value)
    assert {name: pair.updates(name) for name in pair.replicas} == sent
    shutil.rmtree(pair.state)
    newest.rename(pair.state)
    pair.run_available(spark)
    finish(pair)


def test_what_a_hub_cannot_work_with(pair: Site, spark: SparkSession) -> None:
    """It reports which topic, and what to do."""
    admin = KafkaAdminClient(bootstrap_servers=pair.ends.bootstrap)
    admin.create_partitions({pair.replicas["a"].changes: 2})
    admin.close()

    with pytest.raises(SourceError) as told:
        pair.run_available(spark)

    assert f"{pair.replicas['a'].changes} has 2 partitions" in str(told.value)
    assert "delete it and let the hub create it" in str(told.value)
