"""Conflict functions through the real hub: several at once, users' own, and what must survive."""

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from checkpoints.tables import CONFLICTS, TableName
from connectors import wire
from connectors.kafka.embedded.broker import Broker
from streaming.core.model.change import Change
from streaming.core.records.record import Heartbeat, Reason
from streaming.stages.log import OF_REFUSED
from tests.harness import user_functions, verdict
from tests.harness.hub_process import wait_until
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import Site, site
from tests.model.replica import image, row_of

FUNCTIONS = {
    "epoch": "EPOCH",
    "epoch2": "EPOCH2",
    "trans": "EPOCH_TRANS",
    "max": "MAX(v)",
    "old": "OLD(v)",
    "csn": "CSN",
    "pass": "PASS",
    "primary": "PRIMARY(b)",
    "user": user_functions.MERGE,
    "broken": user_functions.FAIL,
}
"""Table -> its function."""

BASE = "m"
"""The value that every row has before the conflict; every replica has seen it."""

A = 1
"""The rid of a."""

NAMES = {1: "a", 2: "b", 3: "c"}
"""rid -> replica."""


@dataclass(frozen=True, slots=True)
class Case:
    """One conflict: a writes `first` and `by` writes `second` over it without having seen it.

    `now`: the value that comes of it. `lost`: who is recorded as the loser; None: nobody.
    """

    table: str
    key: str
    first: str | None
    by: str
    second: str | None
    now: str | None
    kind: str
    lost: str | None
    verdict: str = "accepted"

    @property
    def row(self) -> str:
        """The row as a replica is sent it."""
        return f"{self.table}.{self.key}"


REJECTED = "rejected"
UPDATE = "update_origin_change"
CASES = (
    Case("epoch", "update", "a", "b", "b", "a", UPDATE, "change", REJECTED),
    Case("epoch", "delete", "a", "b", None, "a", "delete_recently_updated", "change", REJECTED),
    Case("epoch", "new", "a", "b", "b", "a", "insert_exists", "change", REJECTED),
    Case("epoch2", "update", None, "b", "b", None, "update_recently_deleted", "change", REJECTED),
    Case("epoch2", "both delete", None, "b", None, None, "delete_recently_deleted", None),
    Case("max", "larger", "n", "b", "o", "o", UPDATE, "row"),
    Case("max", "smaller", "n", "b", "l", "n", UPDATE, "change", REJECTED),
    Case("max", "delete", "n", "b", None, "n", "delete_recently_updated", "change", REJECTED),
    Case("old", "as it was", BASE, "b", "b", "b", UPDATE, "row"),
    Case("old", "another", "a", "b", "b", "a", UPDATE, "change", REJECTED),
    Case("csn", "newer", "a", "b", "b", "b", UPDATE, "row"),
    Case("csn", "older", "a", "c", "c", "a", UPDATE, "change", REJECTED),
    Case("pass", "update", "a", "b", "b", "b", UPDATE, "row"),
    Case("pass", "delete", "a", "b", None, None, "delete_recently_updated", "row"),
    Case("primary", "its", "a", "b", "b", "b", UPDATE, "row"),
    Case("primary", "another's", "a", "c", "c", "a", UPDATE, "change", REJECTED),
    Case("user", "update", "a", "b", "b", "a + b", UPDATE, "row"),
    Case("user", "delete", "a", "b", None, None, "delete_recently_updated", "row"),
    Case("broken", "update", "a", "b", "b", "a", UPDATE, None, "quarantined"),
)


@pytest.fixture
def many(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with three replicas and a table for each family of functions."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc", functions=FUNCTIONS) as made:
        yield made


def test_each_function_decides_its_conflicts(many: Site, spark: SparkSession) -> None:
    """Whatever a function returns, it is recorded with its facts, and all replicas end equal."""
    a, b, c = many.replicas.values()
    clock_s = a.clock_s
    with many.running(spark) as hub:
        for replica in (a, b, c):
            replica.hello()
        for case in CASES:
            if case.key != "new":
                a.write(case.row, BASE)
        x, y, z = (a.write(f"trans.{key}", BASE) for key in "xyz")
        hub.takes(a)
        hub.brings(a, b, c)
        a.clock_s, b.clock_s = clock_s + 1, clock_s + 2  # so c's are the oldest, b's the newest
        firsts = [a.write(case.row, case.first) for case in CASES]
        a.write("trans.x", "a")
        hub.takes(a)
        seconds = [many.replicas[case.by].write(case.row, case.second) for case in CASES]
        first_trans = [b.write(f"trans.{key}", "b", "one") for key in "yx"]
        b.commit("one")
        reborn = b.write("epoch2.both delete", "again")
        hub.takes(b, c)
        second_trans = [b.write(f"trans.{key}", "c", "two") for key in "yz"]
        b.commit("two")
        alone = b.write("trans.z", "d")
        hub.takes(b)
        hub.brings(a, b, c)
        retried = [b.write(f"trans.{key}", "e", "three") for key in "xyz"]
        b.commit("three")
        hub.takes(b)
        hub.brings(a, b, c)

    assert (x.epoch, y.epoch, z.epoch) == (1, 1, 1)
    judged = {row["csn"]: row for row in verdict.changes_of(many)}
    recorded = {_judged_csn(row): row for row in verdict.conflicts(many)}
    committed_at = {
        row["batch"]: row["at"]
        for row in verdict.rows_of(many.state, TableName.EPOCHS)
        if row["kind"] == "commit"
    }
    for case, first, second in zip(CASES, firsts, seconds, strict=True):
        facts = judged[second.csn]
        assert (case, facts["verdict"], facts["cause"]) == (case, case.verdict, "author")
        expected = case.lost and {
            **expected_conflict(case, judged, first, second),
            "at": committed_at[facts["batch"]],
        }
        assert (case, recorded.pop(second.csn, None)) == (case, expected)
        now = image(case.key, case.now) if case.now is not None else None
        assert (case, refreshed(many, second)) == (case, [now])
        if case.key != "both delete":
            for replica in (a, b, c):
                assert (case, replica.rows.get(second.row)) == (case, now)

    assert judged[reborn.csn]["verdict"] == "accepted"
    assert a.rows[reborn.row] == reborn.after
    rejected = [*first_trans, *second_trans, alone]
    assert [judged[change.csn]["verdict"] for change in rejected] == [REJECTED] * 5
    causes = ["transaction", "author", "realign", "transaction", "realign"]
    assert [judged[change.csn]["cause"] for change in rejected] == causes
    told = [recorded.pop(change.csn) for change in rejected]
    assert {(row["kind"], row["lost"], row["function"]) for row in told} == {
        ("transaction", "change", "EPOCH_TRANS")
    }
    assert [row["prim_csn"] for row in told] == [change.prim_csn for change in rejected]
    assert recorded == {}
    assert {judged[change.csn]["verdict"] for change in retried} == {"accepted"}
    (kept,) = many.slackwater("quarantine", "list")
    broken = next(s for s in seconds if s.table == "broken")
    assert (kept["reason"], kept["csn"]) == (Reason.FUNCTION, broken.csn)
    assert kept["detail"] == f"{user_functions.FAIL} failed: ValueError: not {broken.key}"
    author = next(r for r in (a, b, c) if r.rid == broken.rid)
    assert base64.b64decode(kept["value_base64"]) == wire.encode(author.session, broken)
    for replica in (a, b, c):
        verdict.check_level(replica, many)
    verdict.check(many)


def expected_conflict(
    case: Case, judged: dict[str, dict[str, Any]], first: Change, second: Change
) -> dict[str, Any]:
    """The whole row of `conflicts` that this case must leave, but for the time of its batch."""
    at, met = judged[second.csn], judged[first.csn]
    seen = at["mre"]
    now = None if case.now is None else image(case.key, case.now)
    change = {"csn": second.csn, "rid": second.rid}
    row = {"csn": first.csn, "rid": A, "hub_epoch": met["hub_epoch"]}
    if case.lost == "change":
        loser = {**change, "epoch": second.epoch, "hub_epoch": None}
        winner, images = row, (second.before, second.after, first.after)
        names = NAMES[second.rid], NAMES[A]
    else:
        loser, winner = {**row, "epoch": None}, {**change, "hub_epoch": at["hub_epoch"]}
        names = NAMES[A], NAMES[second.rid]
        images = None, first.after, now
    expected = {
        **{name: at[name] for name in ("batch", "hub_epoch", "place")},
        "id": f"{at['hub_epoch']}-{at['place']}",
        "kind": case.kind,
        "cause": "author",
        "function": FUNCTIONS[case.table],
        "table": case.table,
        "key": row_of(case.key)[1],
        "lost": case.lost,
        **{f"loser_{name}": value for name, value in loser.items()},
        **{f"winner_{name}": value for name, value in winner.items()},
        "row_epoch": met["hub_epoch"],
        "app": None,
        **dict.fromkeys(OF_REFUSED),
        "mre": seen,
        "reflected_epoch": seen,
        "realign_epoch": 0,
        "same_epoch_only": False,
        "op": second.op.value,
        **dict(zip(("before", "after", "winner_image"), images, strict=True)),
        "prim_csn": None,
        "resolution": "open",
        "resolved_by": None,
        "time": at["time"],
        "loser": names[0],
        "winner": names[1],
    }
    assert 0 < seen < met["hub_epoch"] < at["hub_epoch"]
    assert expected.keys() == set(CONFLICTS.names) - {"at"}
    return expected


def _judged_csn(row: dict[str, Any]) -> str:
    return str(row["loser_csn" if row["lost"] == "change" else "winner_csn"])


def refreshed(at: Site, change: Change) -> list[str | None]:
    """The images of the row that its replica was sent back in the change's own hub epoch."""
    log = verdict.rows_of(at.state, TableName.CHANGELOG, "hub_epoch", "place")
    (judged,) = (row for row in log if (row["kind"], row["csn"]) == ("change", change.csn))
    mine = (judged["hub_epoch"], judged["place"] + 1, change.table, change.key, change.rid)
    return [
        row["image"]
        for row in log
        if row["kind"] == "refresh"
        and (row["hub_epoch"], row["place"], row["table"], row["key"], row["to"]) == mine
    ]


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas, and tables whose functions need something of a change or of us."""
    chosen = {"t": "OLD(v)", "max": "MAX(v)", "counted": user_functions.BY_COUNTER}
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, functions=chosen) as made:
        for replica in made.replicas.values():
            replica.hello()
        yield made


def test_change_that_lacks_what_its_function_compares(pair: Site, spark: SparkSession) -> None:
    """What cannot be judged is kept with its reason, and stays at its writer; nobody waits."""
    a, b = pair.replicas.values()
    for table in ("t", "max"):
        for key in ("k", "l", "m"):
            a.write(f"{table}.{key}", BASE)
    pair.run_available(spark)
    for replica in (a, b):
        replica.catch_up()
    blind = b.change("k", "blind")._replace(before=None)
    b.make(blind)
    partial = b.change("max.k", "partial")._replace(after=row_of("k")[1])
    b.make(partial)
    beside = b.write("l", "in one transaction", "whole")
    gone = b.change("max.m", None)._replace(before=None, prim_csn=beside.csn)
    b.make(gone)
    b.commit("whole")
    good = b.write("max.l", "behind them")

    pair.run_available(spark)

    kept = {row["csn"]: row for row in pair.slackwater("quarantine", "list")}
    assert {csn: (row["reason"], row["detail"]) for csn, row in kept.items()} == {
        blind.csn: ("before", "OLD(v) needs a before-image with column v"),
        partial.csn: ("before", "MAX(v) needs column v in after"),
        gone.csn: ("before", "MAX(v) needs a before-image with column v"),
        beside.csn: ("before", f"its transaction {beside.csn} went to quarantine: before"),
    }
    sessions = {replica.rid: replica.session for replica in (a, b)}
    for change in (blind, partial, gone, beside):
        value = base64.b64decode(kept[change.csn]["value_base64"])
        assert value == wire.encode(sessions[change.rid], change)
    b.catch_up()
    for written in (blind, partial, beside):  # at its writer it stays until somebody decides
        assert b.rows[written.row] == written.after
    assert gone.row not in b.rows
    pair.slackwater("quarantine", "drop", "--reason", "before", "--yes")
    pair.run_available(spark)
    for replica in (a, b):
        replica.catch_up()
        assert {replica.rows[change.row] for change in (blind, partial)} == {image("k", BASE)}
        assert replica.rows[beside.row] == image("l", BASE)
        assert replica.rows[gone.row] == image("m", BASE)
        assert replica.rows[good.row] == good.after
    verdict.check(pair)


def test_function_that_never_says_the_same_is_asked_once(
    pair: Site, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The changelog holds the decision; the next hub must not call the function again."""
    counter = pair.folder / "counter"
    monkeypatch.setenv(user_functions.COUNTER_VARIABLE, str(counter))
    a, b = pair.replicas.values()
    pair.run_available(spark)
    keys = ("merged", "lost", "won", "failed")
    for key in keys:
        a.write(f"counted.{key}", "a")
    pair.run_available(spark)
    changes = [b.write(f"counted.{key}", "b") for key in keys]
    pair.dies(spark, FaultPoint.AFTER_CHANGELOG)
    before = verdict.changes_of(pair)
    asked = user_functions.calls(counter)

    pair.run_available(spark)

    assert user_functions.calls(counter) == asked == len(keys)
    assert verdict.changes_of(pair) == before
    verdicts = {row["csn"]: row["verdict"] for row in before}
    expected = ["accepted", REJECTED, "accepted", "quarantined"]
    assert [verdicts[change.csn] for change in changes] == expected
    lost = [(row["lost"], row["key"]) for row in verdict.conflicts(pair)]
    assert lost == [("row", changes[0].key), ("change", changes[1].key), ("row", changes[2].key)]
    (kept,) = pair.slackwater("quarantine", "list")
    assert (kept["csn"], kept["reason"]) == (changes[3].csn, Reason.FUNCTION)
    values = ["merged by call 0", "a", "b", "a"]
    for replica in (a, b):
        replica.catch_up()
        for change, key, value in zip(changes, keys, values, strict=True):
            assert replica.rows[change.row] == image(key, value)
    verdict.check(pair)


@contextmanager
def transactional(
    folder: Path, broker: Broker, prefix: str, limits: Mapping[str, object]
) -> Iterator[Site]:
    """A hub with two replicas that have sent a hello, and one table under EPOCH_TRANS."""
    trans = {"t": "EPOCH_TRANS"}
    with site(folder, broker.bootstrap_servers, prefix, limits=limits, functions=trans) as made:
        for replica in made.replicas.values():
            replica.hello()
        yield made


@pytest.mark.parametrize("every_epochs", [pytest.param(1, marks=pytest.mark.slow), 1_000])
def test_rejected_transaction_marks_its_rows_over_a_restart(
    tmp_path: Path, broker: Broker, topic_prefix: str, spark: SparkSession, every_epochs: int
) -> None:
    """The mark is read back from the changelog, or from `rows` where it was merged into it."""
    limits = {"materialize_every_epochs": every_epochs}
    with transactional(tmp_path, broker, topic_prefix, limits) as made:
        a, b = made.replicas.values()
        for key in "xyz":
            a.write(key, BASE)
        with made.running(spark) as hub:
            hub.takes(a, b)
            hub.brings(a, b)
            b.clock_s += 1  # judged behind a's, also in the same batch
            a.write("x", "a")
            lost = write_all(b, "xy", "b")
            hub.takes(a, b)
            if every_epochs == 1:

                def is_merged() -> bool:
                    a.send(Heartbeat(a.epoch))  # its batch notes how far `rows` is
                    hub.takes(a)
                    return not is_materialized_behind(made)

                wait_until(is_merged, lambda: "`rows` has the rejected ones", every_s=1)
        merged = verdict.last_commit(made)["rows_epoch"]
        made.file.write_text(made.file.read_text().replace("_epochs = 1\n", "_epochs = 1_000\n"))
        dependent = write_all(b, "yz", "c")
        made.run_available(spark)
        third = write_all(b, "zw", "d")
        made.run_available(spark)
        b.catch_up()
        retried = write_all(b, "yzw", "e")
        made.run_available(spark)

        judged = {row["csn"]: row for row in verdict.changes_of(made)}
        rejected = [*lost, *dependent, *third]
        verdicts = [judged[change.csn]["verdict"] for change in rejected]
        assert verdicts == [REJECTED] * len(rejected)
        assert {judged[change.csn]["verdict"] for change in retried} == {"accepted"}
        rejected_at = judged[lost[0].csn]["hub_epoch"]
        assert merged == (rejected_at if every_epochs == 1 else 0)
        for replica in (a, b):
            replica.catch_up()
        verdict.check(made)


def is_materialized_behind(made: Site) -> bool:
    """Return whether `rows` is not recorded as up to date."""
    commit = verdict.last_commit(made)
    return bool(commit["rows_epoch"] < commit["hub_epoch"])


def write_all(replica: ScriptedReplica, keys: str, value: str) -> list[Change]:
    """Write these rows in one committed transaction."""
    changes = [replica.write(key, value, "all") for key in keys]
    replica.commit("all")
    return changes


def test_large_transaction_is_judged_in_one_hub_epoch(
    tmp_path: Path, broker: Broker, topic_prefix: str, spark: SparkSession
) -> None:
    """However many micro-batches it came in, nobody may ever see a part of it."""
    with transactional(tmp_path, broker, topic_prefix, {"offsets_per_batch": 6}) as made:
        a, b = made.replicas.values()
        b.clock_s += 1  # so b's is judged behind a's
        large = [a.write(f"{number}", "a", "large") for number in range(14)]
        contended = [b.write(f"{number}", "b", "also large") for number in range(13, 27)]
        a.commit("large")
        b.commit("also large")

        made.run_available(spark)

        judged = {row["csn"]: row for row in verdict.changes_of(made)}
        for changes, expected in ((large, "accepted"), (contended, REJECTED)):
            found = {(judged[c.csn]["hub_epoch"], judged[c.csn]["verdict"]) for c in changes}
            assert [verdict_ for _, verdict_ in found] == [expected]
        opened = verdict.rows_of(made.state, TableName.PENDING, "batch", "place")
        assert len({row["batch"] for row in opened if row["action"] == "pending"}) > 2
        for replica in (a, b):
            replica.catch_up()
        assert b.rows == {change.row: change.after for change in large}
        made.run_available(spark)
        verdict.check(made)
