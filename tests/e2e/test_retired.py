"""What is removed from hub.toml is retired: the others go on, and it goes on when it is back."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from checkpoints.tables import TableName
from connectors import wire
from connectors.kafka.embedded.broker import Broker
from streaming.core.model.change import Change
from streaming.core.model.errors import ConfigError
from streaming.core.records.record import Stopped
from tests.harness import verdict
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import Site, site
from tests.reference.wire import decode_update

_BLOCK = re.compile(r'(?m)^\[\[\w+\]\]\nname = "(\w+)"\n(?:.+\n)*\n?')


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with three replicas, all of which have sent a hello."""
    limits = {"pending_changes": 1}
    tables = {"t": "EPOCH", "u": "EPOCH_TRANS"}
    bootstrap = broker.bootstrap_servers
    with site(tmp_path, bootstrap, topic_prefix, "abc", limits, tables) as made:
        for replica in made.replicas.values():
            replica.hello()
        yield made


def without(at: Site, *names: str) -> str:
    """Remove the replicas, agreements and tables of these names from hub.toml; what it was."""
    text = at.file.read_text()
    at.file.write_text(_BLOCK.sub(lambda m: "" if m[1] in names else m[0], text))
    return text


def write(replica: ScriptedReplica, table: str, key: str, label: str | None = None) -> Change:
    """Write a row of either table, in a transaction of this label or alone."""
    change = replica.change(key, replica.name)._replace(table=table)
    if label is not None:
        change = change._replace(prim_csn=replica.open.setdefault(label, change.csn))
    replica.make(change)
    return change


def judged(at: Site) -> set[str]:
    """The CSNs that were accepted or rejected."""
    return {row["csn"] for row in verdict.changes_of(at) if row["verdict"] != "quarantined"}


def kept(at: Site) -> dict[str, tuple[str, str]]:
    """CSN -> reason and detail of what is in quarantine."""
    rows = verdict.rows_of(at.state, TableName.QUARANTINE)
    return {row["csn"]: (row["reason"], row["detail"]) for row in rows if row["action"] == "kept"}


def states(at: Site, what: str) -> dict[str, str]:
    """Name -> state of the replicas or agreements, as `slackwater status` shows them."""
    return {one["name"]: one["state"] for one in at.slackwater("status")[what]}


@pytest.mark.more
def test_a_removed_replica_is_retired_until_it_is_back(three: Site, spark: SparkSession) -> None:
    """Its topic is not read and it is sent nothing; what was open of it is there when it is back.

    An idle hub shows it too; back under its rid it goes on at its offset, in its session. Each run
    merges into `rows`; elsewhere here nobody waits for that.
    """
    often = "[limits]\nmaterialize_every_epochs = 1\n"
    three.file.write_text(three.file.read_text().replace("[limits]\n", often))
    a, b, c = three.replicas.values()
    first = [write(a, "t", "a"), write(c, "t", "c")]
    write(c, "t", "open", label="open")
    three.run_available(spark)
    offset = verdict.last_commit(three)["offsets"][c.changes]
    sent = len(three.updates("c"))
    before = without(three, "c")

    three.run_available(spark)
    assert states(three, "replicas") == {"a": "live", "b": "live", "c": "retired"}
    assert states(three, "agreements") == {"a": "in_sync", "b": "in_sync", "c": "retired"}
    behind = write(c, "t", "behind")
    c.commit("open")
    second = write(b, "t", "b")
    three.run_available(spark)

    assert judged(three) == {change.csn for change in [*first, second]}
    assert verdict.last_commit(three)["offsets"][c.changes] == offset
    assert len(three.updates("c")) == sent
    assert three.slackwater("status")["pending"]["pending"] == 1

    three.file.write_text(before)
    three.run_available(spark)

    assert states(three, "replicas") == {"a": "live", "b": "live", "c": "live"}
    assert behind.csn in judged(three)
    for replica in (a, b, c):
        replica.catch_up()
    verdict.check(three)


@pytest.mark.parametrize(
    "point", [FaultPoint.AFTER_PLAN, pytest.param(FaultPoint.AFTER_COMMIT, marks=pytest.mark.slow)]
)
def test_a_dead_origin_is_retired_for_good(
    three: Site, spark: SparkSession, point: FaultPoint
) -> None:
    """Who lacked its changes gets them; what is unread or open is gone; the others are level.

    The hub dies over it. The origin is told when it comes back after all, and takes no part.
    """
    a, b, c = three.replicas.values()
    has = write(a, "t", "has")
    open_ = write(a, "t", "open", label="open")
    waits = write(a, "t", "waits")
    three.run_available(spark)
    b.catch_up()
    three.run_available(spark)
    unread = write(a, "t", "unread")

    said = three.slackwater("retire", "a")
    assert (said["unread"], said["open_changes"], said["number"]) == (1, 1, None)
    assert said["lacking"].keys() == {"c"}
    three.slackwater("retire", "a", "--yes")
    three.dies(spark, point)
    a.commit("open")
    a.hello()
    for _ in range(2):
        three.run_available(spark)
        for replica in (b, c):
            replica.catch_up()
    three.run_available(spark)

    assert states(three, "replicas")["a"] == "retired: for good"
    shown = three.slackwater("status")
    assert shown["leaving"] == []
    assert not [line for line in shown["ruv"] if line.startswith("{replica 1}")]
    assert {has.csn, waits.csn} <= judged(three)
    assert not {open_.csn, unread.csn} & judged(three)
    told = wire.decode_answer(three.updates("a")[-1][1])
    assert isinstance(told, Stopped)
    assert (told.session, told.state) == (a.session, "retired: for good")
    assert b.rows == c.rows == verdict.rows_of_changelog(three)

    without(three, "a")
    three.run_available(spark)
    assert states(three, "replicas")["a"] == "retired: for good"
    problems = three.slackwater("status")["problems"]
    assert not [one for one in problems if "retired" in one["what"]]


def test_a_removed_tables_changes_are_quarantined(three: Site, spark: SparkSession) -> None:
    """New ones, and those that were open: the rest of their transactions is judged.

    An operator ends one; with the table back he releases them, and all replicas have them. Nothing
    of the table is sent meanwhile, not even the refresh of a lost change: an agent that has no such
    table would refuse it.
    """
    a, b, c = three.replicas.values()
    write(a, "u", "lost")
    lost = write(b, "u", "lost")
    mixed = [write(b, "t", "mixed", label="m"), write(b, "u", "mixed", label="m")]
    ended = [write(c, "u", "ended", label="e"), write(c, "t", "ended", label="e")]
    three.run_available(spark)
    before = without(three, "u")

    b.commit("m")
    b.position = replace(b.position, generation=1)  # else it says one more hello
    b.hello()
    fresh = write(a, "u", "fresh")
    three.slackwater("abort", ended[0].csn)
    c.void.add(c.open.pop("e"))
    three.run_available(spark)

    gone = kept(three)
    assert gone.keys() == {mixed[1].csn, fresh.csn}
    for reason, detail in gone.values():
        assert reason == "table"
        assert detail.startswith("table u is not configured: ")
        assert "add the table (`slackwater config apply`) and release the record" in detail
    assert mixed[0].csn in judged(three)
    told = [decode_update(value) for _, value in three.updates("b")]
    (page,) = [one for one in told if one.session == b.session]
    assert (page.prev, page.items) == (0, ())
    assert three.slackwater("status")["pending"]["pending"] == 0

    three.file.write_text(before)
    three.slackwater("quarantine", "release", *(row["id"] for row in _kept_rows(three)))
    three.run_available(spark)
    for replica in (a, b, c):
        replica.catch_up()

    rows = verdict.rows_of_changelog(three)
    for change in (mixed[1], fresh):
        assert rows["u", change.key] == change.after
    assert a.rows == rows
    assert b.rows == rows | {("u", lost.key): lost.after or ""}


def _kept_rows(at: Site) -> list[dict[str, str]]:
    found: list[dict[str, str]] = at.slackwater("quarantine", "list")
    return found


@pytest.mark.parametrize(
    "point",
    [FaultPoint.AFTER_CHANGELOG, pytest.param(FaultPoint.AFTER_COMMIT, marks=pytest.mark.slow)],
)
def test_a_plan_that_names_a_removed_replica_is_finished(
    three: Site, spark: SparkSession, point: FaultPoint
) -> None:
    """It is finished under its own configuration: what was read of the replica is judged once."""
    a, b, c = three.replicas.values()
    written = [write(a, "t", "k"), write(c, "t", "k"), write(c, "u", "k")]
    three.dies(spark, point)
    sent = len(three.updates("c"))
    before = without(three, "c", "u")
    later = write(c, "t", "later")

    three.run_available(spark)

    assert judged(three) == {change.csn for change in written}
    assert len(three.updates("c")) == sent
    assert states(three, "replicas")["c"] == "retired"

    three.file.write_text(before)
    three.run_available(spark)
    assert later.csn in judged(three)
    for replica in (a, b, c):
        replica.catch_up()
    verdict.check(three)


def test_another_rid_is_refused_at_start(three: Site, spark: SparkSession) -> None:
    """Its changes would be another's: one sentence says which, and nothing is changed."""
    three.run_available(spark)
    text = three.file.read_text()

    three.file.write_text(text.replace("rid = 3", "rid = 7"))
    with pytest.raises(ConfigError, match="the state knows replica c by rid 3") as refused:
        three.run_available(spark)
    assert len(str(refused.value).splitlines()) == 1

    without(three, "c")
    three.file.write_text(three.file.read_text().replace("rid = 2", "rid = 3"))
    with pytest.raises(ConfigError, match="the state knows replica b by rid 2"):
        three.run_available(spark)

    three.file.write_text(text)
    three.run_available(spark)
    assert set(states(three, "replicas").values()) == {"live"}
