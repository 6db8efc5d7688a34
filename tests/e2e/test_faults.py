"""A hub that is killed anywhere goes on where it stopped: nothing is lost and nothing is twice."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from checkpoints.commit.protocol import WRITTEN
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from streaming.core.model.change import Change
from tests.harness import verdict
from tests.harness.fault_points import OF_TOPICS
from tests.harness.hub_process import KILLED
from tests.harness.site import Site, site
from tests.reference.wire import decode_update

BEFORE_COMMIT = {
    FaultPoint.AFTER_PLAN,
    FaultPoint.AFTER_READ,
    FaultPoint.BEFORE_COMMIT,
    *WRITTEN.values(),
}
"""Where the batch is not committed yet: the next hub runs all of it again."""

ONCE = {FaultPoint.AFTER_DELAYS}
"""Where only the first batch of a hub comes, and then none for a minute."""

SELDOM = 1_000


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with three replicas and agreements that does not materialize until it is ordered to."""
    limits = {"materialize_every_epochs": SELDOM}
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc", limits) as made:
        yield made


def play(at: Site, number: int, kept_back: list[Change]) -> None:
    """Input that makes every table be written and two agreements be sent several chunks.

    The transaction that it opens is committed by the next round, which is also too late for the
    change that it keeps back: that goes to quarantine.
    """
    a, b, c = (at.replicas[name] for name in "abc")
    if number:
        b.commit("across")
    for replica in (a, b, c):
        replica.catch_up()
    if number % 2:
        c.hello()
    if number:
        a.publish(kept_back.pop())
    kept_back.append(a.change("late", "v"))
    for n in range(4):
        a.write(f"a{n}", f"{number}")
    a.write("contended", f"a{number}")
    b.write("contended", f"b{number}")
    b.write("both", f"{number}", inside="across")
    c.write(f"c{number}", "c")


def check_cut(at: Site, point: FaultPoint, before: dict[str, int]) -> None:
    """Of what a hub hands over, the part before its death is in the topics, and no more of it.

    A record that dies in the producer would make this a death before everything was published.
    """
    new = {name: at.updates(name)[count:] for name, count in before.items()}
    told = [decode_update(records[-1][1]) for records in new.values() if records]
    is_whole = [update.chunk + 1 == update.chunks for update in told]
    match point:
        case FaultPoint.BETWEEN_CHUNKS:
            assert is_whole[-1:] == [False], f"no batch is cut between its chunks: {told}"
        case FaultPoint.BETWEEN_AGREEMENTS:
            assert any(is_whole), f"no agreement's batch is delivered: {told}"
            assert len(told) < len(new), f"every agreement was sent something: {told}"
        case _:
            pass


HALVES = OF_TOPICS[:7], OF_TOPICS[7:]


@pytest.mark.parametrize(
    ("points", "killed"),
    [
        pytest.param(HALVES[0], HALVES[0][1::4], id="first"),
        pytest.param(HALVES[1], HALVES[1][1::4], id="second", marks=pytest.mark.more),
        pytest.param(OF_TOPICS, OF_TOPICS, id="all", marks=pytest.mark.slow),
    ],
)
def test_kill_at_every_point(
    three: Site, spark: SparkSession, points: Sequence[FaultPoint], killed: Sequence[FaultPoint]
) -> None:
    """Each hub dies at the next of the points and leaves its batch to the one after it.

    `killed`: where it is a process that is killed; elsewhere an error ends a hub in this process.

    New input stands in the topics before each start, so a batch that is run again must not read
    further than its plan; every other start finds nothing of Spark's own checkpoint.
    """
    for replica in three.replicas.values():
        replica.hello()
    unfinished = False
    kept_back: list[Change] = []
    for number, point in enumerate(points):
        play(three, number, kept_back)
        if number % 2:
            shutil.rmtree(three.state / "spark", ignore_errors=True)

        if point is FaultPoint.AFTER_ROWS:
            often = three.file.read_text().replace(f"epochs = {SELDOM}", "epochs = 1")
            three.file.write_text(often)

        is_again = unfinished and point in BEFORE_COMMIT - ONCE
        nth = 2 if is_again else 1  # the first is the old batch
        before = {name: len(three.updates(name)) for name in three.replicas}
        if point in killed:
            with three.hub("--available-now", fault=f"{point}:{nth}") as hub:
                hub.ends_with(KILLED)
        else:
            three.dies(spark, point, nth)
        check_cut(three, point, before)
        unfinished = point in BEFORE_COMMIT
    three.replicas["b"].commit("across")
    three.run_available(spark)

    for replica in three.replicas.values():
        replica.catch_up()
        verdict.check_level(replica, three)
    verdict.check(three)


@pytest.fixture
def one(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with one replica."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "a") as made:
        yield made


def test_kill_at_quarantine_only_batches(one: Site, spark: SparkSession) -> None:
    """Such a batch makes no hub epoch: its number alone keeps its rows from being written twice.

    The state begins with tables and no commit, as a hub leaves it that is killed at its very start.
    """
    StateStore(one.state).create()
    received = []
    for number in range(3):
        received.append(one.replicas["a"].send_bytes(b"no record"))
        nth = 2 if number else 1  # the first is the batch before
        one.dies(spark, FaultPoint.AFTER_QUARANTINE, nth)
    received.append(one.replicas["a"].send_bytes(b"no record"))
    one.run_available(spark)

    kept = verdict.rows_of(one.state, TableName.QUARANTINE, "batch")
    assert [(row["batch"], row["offset"]) for row in kept] == list(enumerate(received, 1))
    assert verdict.last_commit(one)["hub_epoch"] == 0
    verdict.check_commits(one)


def test_the_agreement_of_the_highest_priority_is_sent_to_first(
    three: Site, spark: SparkSession
) -> None:
    """A hub that dies behind the first agreement has handed over nothing to the others."""
    text = three.file.read_text()
    assert text.rindex('consumer = "c"') > text.rindex("[[")
    three.file.write_text(f"{text}priority = 5\n")
    for replica in three.replicas.values():
        replica.hello()
    three.run_available(spark)
    three.replicas["a"].write("k", "v")
    before = {name: len(three.updates(name)) for name in "abc"}

    three.dies(spark, FaultPoint.BETWEEN_AGREEMENTS, 1)

    sent = [name for name, count in before.items() if len(three.updates(name)) > count]
    assert sent == ["c"]
