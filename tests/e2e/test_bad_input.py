"""Bad input never stops the hub: it is kept with its reason and bytes, released or dropped."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from checkpoints.store import rows_of
from checkpoints.tables import TableName
from connectors import wire
from connectors.kafka.embedded.broker import Broker
from streaming.core.model.change import Change
from streaming.core.records.kept_bytes import SHORT_HEAD_BYTES
from streaming.core.records.record import Commit, Reason
from tests.harness import verdict
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import RECORD_BYTES, Site, site
from tests.model.replica import image

LATER = {
    *(Reason.BEFORE, Reason.FUNCTION, Reason.PURGED, Reason.HIDDEN),
    *(Reason.UNREADABLE, Reason.RIGHTS),
}
"""What no record can be here: EPOCH needs nothing (tests/e2e/test_conflict_functions.py has tables
that do), no filter hides anything, and nothing is purged yet; what cannot be read ends a hub first
(test_fatal_batches.py), and both replicas may write the only table."""

LIST_ALL = ("quarantine", "list", "--all")

Kept = dict[Reason, list[tuple[int, bytes]]]
"""Reason -> (offset, bytes) of what is expected in quarantine."""


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        yield made


def altered(replica: ScriptedReplica, alter: Callable[[dict[str, Any]], object]) -> bytes:
    """A fresh change as its record, in which something was altered."""
    record = json.loads(wire.encode(replica.session, replica.change("k", "v")))
    alter(record)
    return json.dumps(record).encode()


def say_everything_bad(a: ScriptedReplica) -> Kept:
    """Say a record of each reason; where the topic has it, and its bytes."""
    kept: Kept = {reason: [] for reason in Reason if reason not in LATER}

    def bad(reason: Reason, value: bytes, time_ms: int | None = None) -> None:
        kept[reason].append((a.send_bytes(value, time_ms), value))

    bad(Reason.SESSION, wire.encode("never-greeted", a.change("k", "early")))
    a.hello()
    bad(Reason.JSON, b'\xff\xfe{"v":1')
    bad(Reason.JSON, b"[1]")
    bad(Reason.VERSION, altered(a, lambda r: r.update(v=2)))
    bad(Reason.KIND, altered(a, lambda r: r.update(kind="chance")))
    bad(Reason.KIND, altered(a, lambda r: r.pop("op")))
    bad(Reason.CSN, altered(a, lambda r: r.update(csn=r["csn"].upper().replace("0", "G"))))
    bad(Reason.RID, altered(a, lambda r: r.update(csn=r["csn"][:12] + "00090000")))
    bad(Reason.SESSION, wire.encode("another", a.change("k", "v")))
    bad(Reason.TABLE, altered(a, lambda r: r.update(table="u")))
    bad(Reason.COLUMN, altered(a, lambda r: r["after"].update(w="no such column")))
    bad(Reason.TABLE, altered(a, lambda r: r["after"].update(v=1)))
    bad(Reason.KEY, altered(a, lambda r: r.update(key={"k": "not the image's"})))
    bad(Reason.SIZE, altered(a, lambda r: r["after"].update(v="x" * RECORD_BYTES)))
    far = f"{a.clock_s + 100_000:08x}"
    ahead = altered(a, lambda r: r.update(csn=far + r["csn"][8:]))
    bad(Reason.SKEW, ahead, a.clock_s * 1000)
    late = a.change("late", "v")
    used = a.write("used", "first")
    bad(Reason.LATE, wire.encode(a.session, late))
    again = used._replace(after=image("used", "second"))
    bad(Reason.REUSED, wire.encode(a.session, again))
    ended = a.write("ended", "v", inside="cut short")
    del a.rows[ended.row]
    a.published.remove(ended)
    a.hello()
    bad(Reason.ENDED, wire.encode(a.session, Commit(ended.csn)))
    return kept


@pytest.mark.parametrize("driver_batch_records", [0, 500_000])
def test_every_reason_is_kept_with_its_bytes(
    pair: Site, spark: SparkSession, driver_batch_records: int
) -> None:
    """What an operator is to judge he must see as it came; what stands behind it is not held up."""
    limit = f"[limits]\ndriver_batch_records = {driver_batch_records}\n"
    pair.file.write_text(pair.file.read_text().replace("[limits]\n", limit))
    a, b = pair.replicas["a"], pair.replicas["b"]
    b.hello()
    expected = say_everything_bad(a)
    good = a.write("good", "behind all of it")

    pair.run_available(spark)

    assert all(expected.values()), "a reason without a record: say one"
    listed = pair.slackwater("quarantine", "list")
    found = {(Reason(r["reason"]), r["id"], base64.b64decode(r["value_base64"])) for r in listed}
    assert found == {
        (reason, f"1-{offset}", value) for reason, one in expected.items() for offset, value in one
    }
    assert len(listed) == len(found)
    a.catch_up()
    b.catch_up()
    assert b.rows[good.row] == good.after
    assert a.rows == b.rows == verdict.rows_of_changelog(pair)


def test_reasons_that_cannot_be_here() -> None:
    """A reason that the hub learns to give needs its record above."""
    taken = {reason for reason in Reason if reason not in LATER}

    assert taken | LATER == set(Reason)


def test_release_and_drop(pair: Site, spark: SparkSession) -> None:
    """A record whose fault is mended becomes a change of the hub, sent to all; others go."""
    a, b = pair.replicas["a"], pair.replicas["b"]
    a.hello()
    b.hello()
    unknown = a.send_bytes(altered(a, lambda r: r.update(table="u")))
    broken = a.send_bytes(b"{")
    stays = a.send_bytes(altered(a, lambda r: r.update(table="nobody's")))
    pair.run_available(spark)
    pair.learn_second_table()

    pair.slackwater("quarantine", "release", f"1-{unknown}", f"1-{stays}")
    pair.slackwater("quarantine", "drop", f"1-{broken}")
    pair.run_available(spark)

    assert [row["id"] for row in pair.slackwater("quarantine", "list")] == [f"1-{stays}"]
    actions = {r["id"]: r["action"] for r in pair.slackwater("quarantine", "list", "--all")}
    assert actions == {
        f"1-{unknown}": "released",
        f"1-{broken}": "dropped",
        f"1-{stays}": "kept",
    }
    for replica in (a, b):
        replica.catch_up()
        assert replica.rows == {("u", '{"k":"k"}'): image("k", "v")}
    (change,) = verdict.rows_of(pair.state, TableName.CHANGELOG)
    assert change["rid"] == pair.config().hub.rid


def test_beyond_the_budget_a_record_is_released_whole_or_not_at_all(
    pair: Site, spark: SparkSession
) -> None:
    """Only a short head of it is kept, and the hash that tells whether its topic has it still."""
    limit = "[limits]\nquarantine_bytes = 1\n"
    pair.file.write_text(pair.file.read_text().replace("[limits]\n", limit))
    a, b = pair.replicas["a"], pair.replicas["b"]
    a.hello()
    b.hello()
    spent = a.send_bytes(b"{")
    text = "x" * (RECORD_BYTES // 2)

    def larger(key: str) -> bytes:
        new = {"table": "u", "key": {"k": key}, "after": {"k": key, "v": key + text}}
        return altered(a, lambda record: record.update(new))

    sent = {key: larger(key) for key in ("gone", "another", "whole")}
    ids = {key: f"1-{a.send_bytes(value)}" for key, value in sent.items()}
    pair.run_available(spark)
    rows = verdict.rows_of(pair.state, TableName.QUARANTINE)
    kept = {row["id"]: row["value"] for row in rows}
    (other,) = (row for row in rows if row["id"] == ids["another"])
    other["sha256"] = "0" * 64
    replaced = rows_of(TableName.QUARANTINE, rows)
    write_deltalake(pair.state / TableName.QUARANTINE, replaced, mode="overwrite")
    pair.ends.cut(a.changes, spent + 2)
    pair.learn_second_table()

    pair.slackwater("quarantine", "release", *ids.values())
    pair.run_available(spark)

    assert kept == {
        f"1-{spent}": b"{",
        **{ids[key]: value[:SHORT_HEAD_BYTES] for key, value in sent.items()},
    }
    found = {r["id"]: (r["action"], r["detail"]) for r in pair.slackwater(*LIST_ALL)}
    assert found[ids["whole"]][0] == "released"
    for key in ("gone", "another"):
        action, detail = found[ids[key]]
        assert (action, detail.partition(" bytes ")[0]) == ("kept", "cannot be released: its")
    for replica in (a, b):
        replica.catch_up()
        assert replica.rows == {("u", '{"k":"whole"}'): image("whole", f"whole{text}")}


def test_what_is_dropped_is_taken_back_where_it_was_written(
    pair: Site, spark: SparkSession
) -> None:
    """An operator who drops all changes of an old session has equal rows, not hidden ones."""
    a, b = pair.replicas["a"], pair.replicas["b"]
    a.hello()
    b.hello()
    first = a.write("k", "what the others have")
    pair.run_available(spark)
    late = a.change("k", "what nobody else has")
    a.rows[late.row] = image("k", "what nobody else has")
    new = a.change("new", "what nobody else has")
    a.rows[new.row] = image("new", "what nobody else has")
    for change in (late, new):
        a.send_bytes(wire.encode("a-0", change))
    pair.run_available(spark)
    differing = pair.slackwater("level", "--max-age", "60")["differing"]

    asked = pair.slackwater("quarantine", "drop", "--reason", "session")
    still = pair.slackwater("quarantine", "list")
    done = pair.slackwater("quarantine", "drop", "--reason", "session", "--yes")
    pair.run_available(spark)

    assert sorted(json.loads(row["key"])["k"] for row in differing) == ["k", "new"]
    assert asked["ids"] == [row["id"] for row in still] == list(done["numbers"])
    assert asked["numbers"] == {}
    for replica in (a, b):
        replica.catch_up()
        assert replica.rows == {first.row: first.after}
    assert pair.slackwater("level", "--max-age", "60")["differing"] == []


def test_release_is_judged_once_though_the_hub_dies(pair: Site, spark: SparkSession) -> None:
    """A command is part of its batch's plan: the next hub carries out the same one, not another."""
    a, b = pair.replicas["a"], pair.replicas["b"]
    a.hello()
    b.hello()
    unknown = a.send_bytes(altered(a, lambda r: r.update(table="u")))
    pair.run_available(spark)
    pair.learn_second_table()
    pair.slackwater("quarantine", "release", f"1-{unknown}")

    pair.dies(spark, FaultPoint.AFTER_QUARANTINE)
    pair.run_available(spark)

    assert pair.slackwater("quarantine", "list") == []
    assert len(verdict.rows_of(pair.state, TableName.CHANGELOG)) == 1
    for replica in (a, b):
        replica.catch_up()
        assert replica.rows == {("u", '{"k":"k"}'): image("k", "v")}
    verdict.check_commits(pair)
    verdict.check_records(pair)


def test_stolen_csn_is_no_memory_of_it(pair: Site, spark: SparkSession) -> None:
    """What stands in the wrong topic must not make the true change a duplicate, restarts or not."""
    a, b = pair.replicas["a"], pair.replicas["b"]
    a.hello()
    b.hello()
    stolen = b.change("k", "v")
    offset = a.send(stolen)
    pair.run_available(spark)

    b.publish(stolen)
    pair.run_available(spark)

    (kept,) = pair.slackwater("quarantine", "list")
    assert (kept["id"], kept["reason"]) == (f"1-{offset}", Reason.RID)
    a.catch_up()
    assert a.rows == {stolen.row: stolen.after}


def test_a_row_that_would_be_too_large_to_send(pair: Site, spark: SparkSession) -> None:
    """Either part could be sent; a hub that took both could never send that row, nor go on."""
    pair.file.write_text(pair.file.read_text().replace('v = "text" }', 'v = "text", w = "text" }'))
    a, b = pair.replicas.values()
    part = "x" * (RECORD_BYTES * 2 // 3)
    with pair.running(spark) as hub:
        a.hello()
        b.hello()
        a.write("k", part)
        second = a.change("k", "")._replace(before=None, after=f'{{"k":"k","w":"{part}"}}')
        offset = a.make(second)
        b.write("other", "v")
        hub.takes(a, b)
        hub.brings(a, b)
        a.write("k", "smaller")
        hub.takes(a)

    (kept,) = verdict.rows_of(pair.state, TableName.QUARANTINE)
    assert (kept["rid"], kept["offset"], kept["csn"]) == (a.rid, offset, second.csn)
    assert kept["reason"] == Reason.SIZE
    assert f"{RECORD_BYTES} are allowed" in kept["detail"]
    for replica in (a, b):
        replica.catch_up()
    verdict.check(pair)


def broken(change: Change) -> bytes:
    """A change as its record, of which the after-image ends in a bracket."""
    value = wire.encode("a-1", change)
    assert value.endswith(b'"}}')
    return value[:-2] + b"]}"


def test_an_image_without_its_last_brace_is_not_json(pair: Site, spark: SparkSession) -> None:
    """Accepted, it would be broken JSON in every update to every consumer, for good."""
    a, b = pair.replicas.values()
    a.hello()
    b.hello()
    offset = a.send_bytes(broken(a.change("k", "v")._replace(after='{"k":"k"}')))
    a.write("good", "v")

    pair.run_available(spark)

    (kept,) = pair.slackwater("quarantine", "list")
    assert (kept["id"], kept["reason"]) == (f"1-{offset}", Reason.JSON)
    b.catch_up()
    assert b.rows == a.rows
