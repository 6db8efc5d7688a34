"""An operator's commands on conflicts and quarantine: the hub's own changes, each once, to all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from checkpoints.tables import TableName
from connectors import wire
from connectors.kafka.embedded.broker import Broker
from streaming.core.model.change import Change
from streaming.core.model.csn import CsnParts, format_csn, rid_of
from tests.harness import user_functions, verdict
from tests.harness.site import Site, site
from tests.model.replica import image

TABLES = {
    "t": "EPOCH",
    "max": "MAX(v)",
    "broken": user_functions.FAIL,
    "mine": user_functions.FAIL_FOR_HUB,
}


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas, both of which have sent a hello."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, functions=TABLES) as made:
        for replica in made.replicas.values():
            replica.hello()
        yield made


def conflict_on(at: Site, change: Change) -> dict[str, Any]:
    """The conflict that this change lost or won, as `conflicts show` has it."""
    (found,) = at.slackwater("conflicts", "show", change.csn)
    assert isinstance(found, dict)
    return found


def test_override_and_accept(pair: Site, spark: SparkSession) -> None:
    """The loser wins everywhere by a change of the hub; who looked too early loses in his turn.

    The hub dies again and again in the batch that carries the commands out: the conflicts are
    closed once, by the change that every replica was sent.
    """
    a, b = pair.replicas.values()
    a.write("deleted", "m")
    a.write("max.row", "l")
    pair.run_available(spark)
    for replica in (a, b):
        replica.catch_up()
    looked_early = verdict.last_commit(pair)["hub_epoch"]
    for key in ("overridden", "accepted", "early", "deleted"):
        a.write(key, "a")
    lower = a.write("max.row", "m")
    pair.run_available(spark)
    lost, agreed, early = (b.write(key, "b") for key in ("overridden", "accepted", "early"))
    deleted = b.write("deleted", None)
    higher = b.write("max.row", "n")
    pair.run_available(spark)
    changes = (lost, deleted, higher, agreed, early)
    ids = {change.csn: conflict_on(pair, change)["id"] for change in changes}
    overridden = [ids[change.csn] for change in (lost, deleted, higher)]

    pair.slackwater("conflicts", "override", *overridden)
    pair.slackwater("conflicts", "accept", ids[agreed.csn])
    pair.slackwater("conflicts", "override", "--seen", str(looked_early), ids[early.csn])
    for point in (
        *(FaultPoint.AFTER_CHANGELOG, FaultPoint.AFTER_CONFLICTS),
        *(FaultPoint.BEFORE_COMMIT, FaultPoint.AFTER_COMMIT),
    ):
        pair.dies(spark, point)
    pair.run_available(spark)

    own = [row for row in verdict.changes_of(pair) if row["rid"] == pair.config().hub.rid]
    by_row = {(row["table"], row["key"]): row for row in own}
    assert len(own) == len(by_row) == 4
    closed = {row["id"]: row for row in verdict.conflicts(pair)}
    for change in (lost, deleted, higher):
        by = by_row[change.row]
        found = closed[ids[change.csn]]
        assert (found["resolution"], found["resolved_by"]) == ("overridden", by["csn"])
        assert (by["verdict"], by["cause"]) == ("accepted", None)
    agreed_on = closed[ids[agreed.csn]]
    assert (agreed_on["resolution"], agreed_on["resolved_by"]) == ("accepted", None)
    too_early = by_row[early.row]
    assert (too_early["verdict"], too_early["mre"]) == ("rejected", looked_early)
    opened = pair.slackwater("conflicts", "list", "--open")
    assert [(row["id"], row["loser_csn"]) for row in opened] == [
        (ids[early.csn], early.csn),
        (f"{too_early['hub_epoch']}-{too_early['place']}", too_early["csn"]),
    ]
    written = verdict.rows_of(pair.state, TableName.CONFLICTS, "id")
    resolved = [row["id"] for row in written if row["resolution"] != "open"]
    assert resolved == sorted([*overridden, ids[agreed.csn]])

    pair.slackwater("conflicts", "override", ids[early.csn])
    pair.run_available(spark)

    assert conflict_on(pair, early)["resolution"] == "overridden"
    for replica in (a, b):
        replica.catch_up()
        assert replica.rows == {
            lost.row: image("overridden", "b"),
            agreed.row: image("accepted", "a"),
            early.row: image("early", "b"),
            lower.row: image("row", "m"),
        }
        verdict.check_level(replica, pair)
    verdict.check(pair)


@pytest.mark.more
def test_word_that_cannot_be_carried_out(pair: Site, spark: SparkSession) -> None:
    """What an operator orders must not stop the hub, now and at every start.

    An override whose function fails is a change of the hub's own: no topic has it, so it cannot
    be read again. A conflict may be of a table that is configured no more.
    """
    a, b = pair.replicas.values()
    rows = ("mine.k", "mine.l", "max.k")
    for row in rows:
        a.write(row, "n")
    pair.run_available(spark)
    changes = [b.write(row, "m") for row in rows]
    pair.run_available(spark)
    one, another, gone = (conflict_on(pair, change)["id"] for change in changes)
    head, _, tail = pair.file.read_text().partition('\n[[tables]]\nname = "max"')
    pair.file.write_text(head + tail[tail.index("\n[[") :])

    pair.slackwater("conflicts", "override", "--seen", "0", one, another)
    pair.slackwater("conflicts", "override", gone)
    pair.run_available(spark)
    kept = [row["id"] for row in pair.slackwater("quarantine", "list", "--reason", "function")]
    pair.slackwater("quarantine", "release", *kept)
    pair.run_available(spark)

    assert len(kept) == len(set(kept)) == 2
    listed = pair.slackwater("quarantine", "list")
    assert [row["id"] for row in listed] == kept
    opened = [row["id"] for row in pair.slackwater("conflicts", "list", "--open")]
    assert opened == [one, another, gone]
    good = b.write("good", "behind it")
    pair.run_available(spark)
    a.catch_up()
    assert a.rows[good.row] == good.after


@pytest.mark.more
def test_release_of_what_came_too_late(pair: Site, spark: SparkSession) -> None:
    """A released record is a new change of the hub: it goes to every replica, its origin too."""
    a, b = pair.replicas.values()
    late = a.change("late", "late")
    used = a.write("used", "first")
    pair.run_available(spark)
    for replica in (a, b):
        replica.catch_up()
    a.make(late)
    reused = used._replace(after=image("used", "second"))
    a.make(reused)
    cut = a.write("cut short", "open", inside="session")
    a.hello()
    ended = a.change("ended", "ended")._replace(prim_csn=cut.csn)
    a.make(ended)
    a.write("broken.broken", "a")
    pair.run_available(spark)
    failed = b.write("broken.broken", "b")
    pair.run_available(spark)
    for replica in (a, b):
        replica.catch_up()
    kept = {row["reason"]: row["id"] for row in pair.slackwater("quarantine", "list")}
    assert set(kept) == {"late", "reused", "ended", "function"}
    assert a.rows == b.rows == verdict.rows_of_changelog(pair)

    pair.slackwater("quarantine", "release", *kept.values())
    pair.run_available(spark)

    released = [row for row in verdict.changes_of(pair) if row["rid"] == pair.config().hub.rid]
    assert {(row["table"], row["key"], row["after"]) for row in released} == {
        (change.table, change.key, change.after) for change in (late, reused, ended, failed)
    }
    assert {row["verdict"] for row in released} == {"accepted"}
    assert {rid_of(row["csn"]) for row in released} == {pair.config().hub.rid}
    assert pair.slackwater("quarantine", "list") == []
    for replica in (a, b):
        replica.catch_up()
        for change in (late, reused, ended, failed):
            assert replica.rows[change.row] == change.after
    assert a.rows == b.rows
    verdict.check_conflicts(pair)
    verdict.check_commits(pair)
    verdict.check_rows(pair)


def test_release_of_what_a_wrong_clock_wrote(pair: Site, spark: SparkSession) -> None:
    """One command brings all of it to every replica, of a row what was written last."""
    a, b = pair.replicas.values()
    agreed = a.write("k", "agreed")
    pair.run_available(spark)
    for replica in (a, b):
        replica.catch_up()
    for number in range(12):
        change = a.change("k", f"v{number}")
        csn = format_csn(CsnParts(a.clock_s + 30 * 3_600, number, a.rid, 0))
        a.send_bytes(wire.encode(a.session, change._replace(csn=csn)), a.clock_s * 1_000)
    a.rows[agreed.row] = image("k", "v11")
    pair.run_available(spark)
    b.catch_up()
    assert b.rows[agreed.row] == agreed.after
    (listed,) = pair.slackwater("conflicts", "list", "--kind", "uncarried")
    assert listed["key"] == agreed.key

    pair.slackwater("quarantine", "release", "--reason", "skew", "--replica", "a", "--yes")
    pair.run_available(spark)

    for replica in (a, b):
        replica.catch_up()
        assert replica.rows[agreed.row] == image("k", "v11")
    assert pair.slackwater("quarantine", "list") == []
    assert pair.slackwater("conflicts", "list", "--kind", "uncarried") == []
