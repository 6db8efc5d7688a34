"""What happens where something has become as large as it may be."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from streaming.core.intake.shares import LEAST_RECORDS
from streaming.core.records.record import Commit
from tests.harness import verdict
from tests.harness.fault_points import OF_TOPICS
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import Site, site

OPEN_TRANSACTIONS = 3
OFFSETS_PER_BATCH = 4
PENDING_CHANGES = 10
LARGE = 15
FLOOD = 2 * LEAST_RECORDS + 50


@pytest.fixture
def small(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas that keeps few open transactions, and reads few records at a time."""
    limits = {"open_transactions": OPEN_TRANSACTIONS, "offsets_per_batch": OFFSETS_PER_BATCH}
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab", limits) as made:
        yield made


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with three replicas that keeps few open changes in memory."""
    limits = {"pending_changes": PENDING_CHANGES, "offsets_per_batch": 3 * OFFSETS_PER_BATCH}
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc", limits) as made:
        yield made


@pytest.fixture
def hasty(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas whose batches have time for the fewest records of each."""
    limits = {"batch_ms": 1}
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab", limits) as made:
        yield made


def write_open(replica: ScriptedReplica) -> None:
    """As many transactions as may be open; their commits do not come."""
    for number in range(OPEN_TRANSACTIONS):
        replica.write(f"open {number}", "of a transaction", inside=f"open {number}")


def write_large(replica: ScriptedReplica, shared: str = "", number: int = 0) -> None:
    """A transaction with more changes than memory holds, and plain changes behind it."""
    for row in range(LARGE):
        replica.write(f"large {replica.name} {row}", f"{number} by {replica.name}", inside="large")
    if shared:
        replica.write(shared, f"by {replica.name}", inside="large")
    for row in range(LARGE):
        replica.write(f"behind {replica.name} {row}", f"{number} waits")


def is_paused(at: Site) -> dict[str, bool]:
    """Replica -> what `slackwater status` says of it."""
    return {one["name"]: one["paused"] for one in at.slackwater("status")["replicas"]}


def open_changes(at: Site) -> dict[str, tuple[int, int]]:
    """Replica -> how many changes `slackwater status` says are pending, and waiting."""
    told = at.slackwater("status")["replicas"]
    return {one["name"]: (one["pending"], one["waiting"]) for one in told}


def offsets(at: Site, replica: ScriptedReplica) -> list[int]:
    """How far the hub had read this replica's topic, commit by commit."""
    commits = verdict.rows_of(at.state, TableName.EPOCHS, "batch")
    found = [dict(row["offsets"]) for row in commits if row["kind"] == "commit"]
    return [row[replica.changes] for row in found if replica.changes in row]


def level(at: Site, spark: SparkSession) -> None:
    """Let the hub take all there is, and every replica apply it and say so."""
    for _ in range(2):
        at.run_available(spark)
        for replica in at.replicas.values():
            replica.catch_up()
    at.run_available(spark)


def test_a_replica_with_too_many_open_transactions_is_paused_until_one_aborts(
    small: Site, spark: SparkSession
) -> None:
    """They are held in memory: the others go on, and nothing of what stands behind is lost."""
    a, b = small.replicas["a"], small.replicas["b"]
    with small.running(spark) as hub:
        a.hello()
        b.hello()
        write_open(a)
        hub.takes(a, b)
        read = offsets(small, a)[-1]
        for number in range(3 * OFFSETS_PER_BATCH):
            a.write(f"behind {number}", "waits in the topic")
        b.write("meanwhile", "by b")
        hub.takes(b)
        hub.brings(b)

        assert is_paused(small) == {"a": True, "b": False}
        assert offsets(small, a)[-1] == read

        for label in list(a.open):
            small.slackwater("abort", a.open[label])
        hub.waits_for(lambda: open_changes(small)["a"] == (0, 0), "every abort is taken")
        hub.takes(a)
        hub.brings(a, b)
        hub.takes(a, b)

    assert is_paused(small) == {"a": False, "b": False}
    steps = [after - before for before, after in pairwise(offsets(small, a))]
    assert max(steps) <= OFFSETS_PER_BATCH
    verdict.check(small)


def test_a_flood_of_one_replica_is_read_in_shares_and_the_others_pass(
    hasty: Site, spark: SparkSession
) -> None:
    """A batch of all that waits would be long; the other's change would come behind it."""
    a, b = hasty.replicas["a"], hasty.replicas["b"]
    a.hello()
    b.hello()
    level(hasty, spark)
    for number in range(FLOOD):
        a.send_bytes(b"junk %d" % number)
    b.write("meanwhile", "by b")
    before = len(offsets(hasty, a)) - 1

    hasty.run_available(spark)

    read, of_b = offsets(hasty, a)[before:], offsets(hasty, b)[before:]
    steps = [after - at for at, after in pairwise(read)]
    assert sum(steps) >= FLOOD
    assert max(steps) == LEAST_RECORDS
    assert of_b[1] > of_b[0]
    a.catch_up()
    assert b.rows == a.rows

    with hasty.running(spark) as hub:
        for number in range(FLOOD):
            a.send_bytes(b"more junk %d" % number)
        for number in range(3):
            b.write(f"later {number}", "by b")
            hub.takes(b)
        a.write("behind the flood", "by a")
        hub.takes(a)
        hub.brings(a, b)
    verdict.check(hasty)


def test_a_paused_replica_is_read_on_with_a_larger_limit(small: Site, spark: SparkSession) -> None:
    """So many may be meant; then each is judged whole."""
    a, b = small.replicas["a"], small.replicas["b"]
    a.hello()
    b.hello()
    write_open(a)
    small.run_available(spark)
    for label in list(a.open):
        a.commit(label)
    a.write("behind", "waits in the topic")
    small.run_available(spark)
    assert is_paused(small) == {"a": True, "b": False}

    text = small.file.read_text()
    few, many = (f"open_transactions = {count}" for count in (OPEN_TRANSACTIONS, 100))
    assert few in text
    small.file.write_text(text.replace(few, many))
    level(small, spark)

    assert is_paused(small) == {"a": False, "b": False}
    verdict.check(small)


def test_transactions_larger_than_the_limit_commit(three: Site, spark: SparkSession) -> None:
    """Their commits stand behind all that the limit lets in: a hub that paused would wait for ever.

    Two of them write one row: the second to be judged loses it.
    """
    replicas = three.replicas.values()
    for replica in replicas:
        replica.hello()
        write_large(replica, shared="contended")
    three.run_available(spark)
    assert open_changes(three) == dict.fromkeys("abc", (LARGE + 1, LARGE))
    assert not any(is_paused(three).values())

    for replica in replicas:
        replica.commit("large")
    level(three, spark)

    assert open_changes(three) == dict.fromkeys("abc", (0, 0))
    assert len(verdict.rows_of(three.state, TableName.CONFLICTS, "batch")) == 2
    verdict.check(three)


def test_a_transaction_larger_than_the_limit_aborts(three: Site, spark: SparkSession) -> None:
    """What waited behind it is judged; a repeat of what is on disk only is still a duplicate."""
    a, b, c = three.replicas.values()
    for replica in (a, b, c):
        replica.hello()
    write_large(a)
    three.run_available(spark)
    middle = a.published[LARGE // 2]
    waiting = a.published[LARGE + LARGE // 2]
    a.send(middle)
    a.send(waiting)
    three.run_available(spark)
    for number in range(LARGE):
        a.rows.pop(("t", f'{{"k":"large a {number}"}}'))
    a.abort("large")
    a.send(middle)
    level(three, spark)

    assert open_changes(three) == dict.fromkeys("abc", (0, 0))
    assert three.slackwater("status")["totals"]["duplicates"] == 3
    verdict.check(three)


@pytest.mark.more
def test_a_transaction_larger_than_the_limit_is_ended_by_an_operator(
    three: Site, spark: SparkSession
) -> None:
    """He may name any of its changes; all its rows are refreshed at the origin."""
    a, b, c = three.replicas.values()
    for replica in (a, b, c):
        replica.hello()
    write_large(a)
    three.run_available(spark)

    three.slackwater("abort", a.published[LARGE // 2].csn)
    level(three, spark)

    assert open_changes(three) == dict.fromkeys("abc", (0, 0))
    assert not any("large" in key for _, key in a.rows)
    verdict.check(three)


@pytest.mark.more
@pytest.mark.parametrize("follows", [pytest.param("nothing", marks=pytest.mark.slow), "commit"])
def test_a_transaction_larger_than_the_limit_is_ended_by_a_hello(
    three: Site, spark: SparkSession, follows: str
) -> None:
    """A commit that comes later says that the origin holds its rows: they are refreshed there."""
    a, b, c = three.replicas.values()
    for replica in (a, b, c):
        replica.hello()
    write_large(a)
    prim_csn = a.open["large"]
    three.run_available(spark)
    a.hello()
    if follows == "nothing":
        for number in range(LARGE):
            a.rows.pop(("t", f'{{"k":"large a {number}"}}'))
    else:
        a.send(Commit(prim_csn))
    level(three, spark)

    assert open_changes(three) == dict.fromkeys("abc", (0, 0))
    assert not any("large" in key for _, key in a.rows)
    verdict.check(three)


@pytest.mark.slow
def test_kill_while_a_transaction_larger_than_the_limit_comes_back(
    three: Site, spark: SparkSession
) -> None:
    """Each hub dies at the next point of the batch whose commit frees what is on disk."""
    for replica in three.replicas.values():
        replica.hello()
    writers = [three.replicas[name] for name in "ab"]
    for number, point in enumerate(one for one in OF_TOPICS if one is not FaultPoint.AFTER_ROWS):
        for replica in writers:
            replica.send_bytes(b"no record")
            if number:
                replica.commit("large")
            write_large(replica, "contended", number)
        three.dies(spark, point)
        three.run_available(spark)
        three.replicas["c"].catch_up()
    for replica in writers:
        replica.commit("large")
    level(three, spark)

    assert open_changes(three) == dict.fromkeys("abc", (0, 0))
    verdict.check(three)
