"""Claims about `status`."""

import json
import os
import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import gethostname

import pytest

from checkpoints.commit.last_poll import LastPoll, write_poll
from checkpoints.commit.lock import FILE, only_hub, start_again
from checkpoints.delays import delay_rows
from checkpoints.reading.reader import Reader, open_state
from checkpoints.tables import TableName
from streaming.cli.command import append_command
from streaming.config.sources.load import load
from streaming.core.batch.counters import (
    DELETE_DELETE,
    FUNCTION,
    REFRESH,
    ROW_REJECT,
    TRANSACTION_REJECT,
)
from streaming.core.counts.counter_keys import ReplicaKey
from streaming.core.counts.tallies import kept_records
from streaming.core.delivery.day_delay import DayDelay, day_of
from streaming.core.model.command import CommandName
from streaming.core.model.statuses import ReplicaStatus, Stop, StopReason
from streaming.core.records.quarantine_budget import KeptSum
from streaming.core.state.replica_state import AgentEnd, ReplicaState
from streaming.facts.status.hub import hub_status
from streaming.facts.status.recorded import recorded_facts
from tests.checkpoints.written_state import (
    SEEN_MS,
    WrittenState,
    agreement,
    change_row,
    replica,
    ruv,
)
from tests.harness.builders import csn
from tests.streaming.cli.conftest import Slackwater


def now_ms() -> int:
    """The clock of a hub that runs."""
    return round(time.time() * 1000)


def heard(rid: int) -> ReplicaState:
    """A live replica whose agent runs."""
    return replica(rid, covers=1, seen_ms=now_ms())


def first(shown: str) -> str:
    """The first line."""
    return shown.splitlines()[0]


def test_status_tells_where_everybody_is(slackwater: Slackwater, state: WrittenState) -> None:
    """One commit row, read as an operator asks."""
    state.commit(
        9,
        5,
        ruv(r1=3, r2=2),
        [replica(1, covers=4), replica(2, status=ReplicaStatus.SILENT)],
        [agreement("to-a", 1, 4, ruv(r1=3, r2=2)), agreement("to-b", 2, 5, ruv(r1=3, r2=2))],
        counts={"changes": 2},
        totals={"changes": 11},
    )
    conflict = {"batch": 9, "hub_epoch": 5, "place": 0, "kind": "insert_exists"}
    state.append(TableName.CONFLICTS, conflict, conflict | {"id": "5-1", "kind": "other"})
    kept = {"batch": 9, "id": "1-4", "action": "kept", "reason": "json", "rid": 1}
    state.append(TableName.QUARANTINE, kept)
    pending = {"batch": 9, "place": 0, "action": "pending", "rid": 2, "csn": csn(3, 2)}
    state.append(TableName.PENDING, pending)

    facts = slackwater("status", "--json").facts

    assert facts["hub"] == "centre"
    assert (facts["hub_epoch"], facts["batch"], facts["generation"]) == (5, 9, 1)
    assert facts["planned_batch"] is None
    assert facts["ruv"] == ruv(r1=3, r2=2).text()
    one, two = facts["replicas"]
    assert (one["name"], one["state"], one["session"], one["epoch"]) == (
        "a",
        "live",
        "session-1",
        8,
    )
    assert (one["mre"], one["max_csn"], one["pending"]) == (4, csn(3, 1), 0)
    assert (two["state"], two["session"], two["mre"], two["pending"]) == ("silent", None, 0, 1)
    assert [
        (a["name"], a["state"], a["sent_covers"], a["acked_covers"], a["lag_epochs"], a["level"])
        for a in facts["agreements"]
    ] == [("to-a", "in_sync", 4, 4, 1, False), ("to-b", "in_sync", 5, 5, 0, False)]
    assert facts["quarantine"] == {"kept": 1, "by_reason": {"json": 1}, "undecided": 1}
    assert facts["conflicts"]["total"] == 2
    assert facts["conflicts"]["by_kind"] == {"insert_exists": 1, "other": 1}
    assert (facts["counts"], facts["totals"]) == ({"changes": 2}, {"changes": 11})


def test_status_names_who_has_spent_the_budget_of_quarantine(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Of a flood only heads are kept, so somebody has to look before the topic is all there is."""
    totals = kept_records({1: KeptSum(7, 64_000_000), 2: KeptSum(50_000, 900)})
    state.commit(9, 5, ruv(r1=3, r2=2), [replica(1), replica(2)], totals=totals)

    answer, facts = slackwater("status"), slackwater("status", "--json").facts

    one, two = facts["replicas"]
    assert (one["kept_records"], one["kept_bytes"], one["kept_ratio"]) == (7, 64_000_000, 1.0)
    assert (two["kept_records"], two["kept_bytes"], two["kept_ratio"]) == (50_000, 900, 0.5)
    assert "a has spent its budget of quarantine: 7 records, 64000000 bytes" in answer.out
    assert "b has spent" not in answer.out
    assert facts["totals"] == {}


def test_status_says_for_how_long_and_by_how_much_a_consumer_lags(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Hub epochs alone do not tell whether a lag is of a second or of a day."""
    replicas, began_ms = [replica(1), replica(2), replica(3)], now_ms() - 90_000
    state.append(
        TableName.CHANGELOG,
        change_row(7, 4, 0, csn(1, 2)),
        change_row(8, 5, 0, csn(1, 1)),
        change_row(8, 5, 1, csn(2, 2)),
        change_row(9, 6, 0, csn(3, 2), "not_configured"),
        change_row(9, 6, 1, csn(4, 2)),
    )
    ahead = agreement("to-b", 2, 6, ruv(r1=1))
    behind = replace(agreement("to-a", 1, 4, ruv(r2=1)), scanned=5)
    state.commit(8, 5, ruv(r1=1, r2=2), replicas, [behind, ahead], at_ms=began_ms)
    state.commit(9, 6, ruv(r1=1, r2=4), replicas, [behind, ahead], at_ms=now_ms())

    to_a, to_b = slackwater("status", "--json").facts["agreements"]

    assert 90 <= to_a["lag_s"] < 300
    assert (to_a["lag_changes"], to_a["unsent_changes"]) == (2, 1)
    assert [(one["origin"], one["changes"]) for one in to_a["origins"]] == [("b", 2)]
    assert (to_b["lag_s"], to_b["lag_changes"], to_b["unsent_changes"]) == (0, 0, 0)


def test_status_counts_conflicts_per_replica_and_table(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Whose changes lose, in which table and by which rule: what NDB's operators look at."""
    totals = {
        "judged": 9,
        ReplicaKey(FUNCTION + "epoch_trans", 2, "a/b"): 1,
        ReplicaKey(ROW_REJECT, 2, "a/b"): 2,
        ReplicaKey(TRANSACTION_REJECT, 2, "a/b"): 1,
        ReplicaKey(DELETE_DELETE, 1, "t"): 3,
        ReplicaKey(REFRESH, 7, "t"): 4,
        ReplicaKey(REFRESH, 1, "u"): 0,
    }
    counts = {"judged": 1, ReplicaKey(REFRESH, 7, "t"): 1}
    state.commit(1, 1, ruv(r1=1), [replica(1), replica(2)], counts=counts, totals=totals)

    facts, shown = slackwater("status", "--json").facts, slackwater("status").out

    assert [(one["replica"], one["table"], one["counters"]) for one in facts["counters"]] == [
        ("a", "t", {"conflict_epoch_delete_delete": 3}),
        (
            "b",
            "a/b",
            {
                "conflict_fn_epoch_trans": 1,
                "conflict_trans_reject": 1,
                "conflict_trans_row_reject": 2,
            },
        ),
        ("7", "t", {"conflict_refresh": 4}),
    ]
    assert (facts["counts"], facts["totals"]) == ({"judged": 1}, {"judged": 9})
    rows = [line.split() for line in shown.splitlines()]
    assert ["b", "a/b", "conflict_trans_row_reject", "2"] in rows
    assert ["7", "t", "conflict_refresh", "4"] in rows
    assert "judged 9\n" in shown
    assert "/2/a" not in shown


def test_status_says_up_to_when_a_consumer_has_what_another_replica_wrote(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """What would be missing if the writer's database were lost now, and the worst of today."""
    wrote_ms = now_ms() - 90_000
    lacking = DayDelay(2, 1, day_of(wrote_ms), wrote_ms - 1, 4, wrote_ms, now_ms(), 90_000, 90_000)
    rows = delay_rows([lacking], 9).to_pylist()
    state.append(TableName.DELAYS, *rows)
    one, two = agreement("to-a", 1, 4, ruv(r1=3, r2=1)), agreement("to-b", 2, 5, ruv(r1=3, r2=2))
    heard_ms = now_ms() - 1_000
    replicas = [replica(1, seen_ms=heard_ms), replica(2, seen_ms=heard_ms)]
    state.commit(9, 5, ruv(r1=3, r2=2), replicas, [one, two], at_ms=now_ms())

    facts, shown = slackwater("status", "--json").facts, slackwater("status").out

    away, level = facts["agreements"]
    (of_b,), (of_a,) = away["delays"], level["delays"]
    assert of_b["origin"] == "b"
    assert datetime.fromisoformat(of_b["complete_to"]).timestamp() * 1000 == wrote_ms - 1
    assert 90 <= of_b["delay_s"] == of_b["worst_today_s"]
    assert of_b["above_minute_today_s"] < of_b["delay_s"]
    assert of_a["origin"] == "a"
    assert datetime.fromisoformat(of_a["complete_to"]).timestamp() * 1000 == heard_ms
    (row,) = [line for line in shown.splitlines() if line.startswith("to-a ")]
    assert row.count("1 min 3") == 2


def test_status_shows_what_is_retired(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """By its name, which the stored configuration has; it is neither paused nor left out."""
    text = config_file.read_text("utf-8")
    config_file.write_text(text + "[limits]\nopen_transactions = 1\n", encoding="utf-8")
    replicas = [{"name": name, "rid": rid} for name, rid in (("a", 1), ("b", 2), ("gone", 3))]
    document = {
        "hub": {"rid": 65534, "topic_prefix": ""},
        "replicas": replicas,
        "tables": [{"name": "t", "key": ["id"], "columns": {}}],
        "agreements": [{"name": "to-gone", "consumer": "gone"}],
    }
    row = {"number": 1, "kind": "config", "document": json.dumps(document)}
    state.append(TableName.CONFIG, row)
    pending = {"batch": 9, "place": 0, "action": "pending", "rid": 3, "csn": csn(3, 3)}
    state.append(TableName.PENDING, pending)
    gone = agreement("to-gone", 3, 2, ruv(r1=3))
    state.commit(9, 5, ruv(r1=3), [replica(1), replica(3, covers=2).retired()], [gone.retired()])

    facts, shown = slackwater("status", "--json").facts, slackwater("status").out

    states = {one["name"]: (one["state"], one["pending"]) for one in facts["replicas"]}
    assert states == {"a": ("live", 0), "b": ("silent", 0), "gone": ("retired", 1)}
    assert facts["agreements"][-1] == {
        "name": "to-gone",
        "consumer": "gone",
        "state": "retired",
        "remedy": None,
        "sent_covers": 2,
        "acked_covers": 2,
        "lag_epochs": 3,
        "lag_s": None,
        "lag_changes": None,
        "unsent_changes": None,
        "origins": [],
        "delays": [],
        "level": False,
        "resync": None,
        "packets": None,
        "comparison": None,
        "not_compared": None,
        "hold_left_s": None,
        "delayed": None,
        "paused": [],
        "is_archive": False,
    }
    rows = [line.split() for line in shown.splitlines()]
    assert ["to-gone", "gone", "retired", "2", "2", "3", "no"] in [row[:7] for row in rows]
    assert ["3", "gone", "retired"] in [row[:3] for row in rows]
    assert "paused" not in shown


def test_no_counters_no_table(slackwater: Slackwater, state: WrittenState) -> None:
    """Where nothing was in conflict, an empty table would be noise."""
    state.commit(1, 1, ruv(r1=1), [replica(1)], totals={"judged": 9})

    assert "  counter" not in slackwater("status").out


def test_conflict_handling_is_in_progress_until_it_is_reflected(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """NDB's test: last conflict epoch above MRE; then the replica does not hold what stands."""
    at_work = replica(1, covers=4, last_conflict_epoch=5, last_stable_epoch=3)
    done = replica(2, covers=5, last_conflict_epoch=5, last_stable_epoch=5)
    state.commit(1, 5, ruv(r1=1), [at_work, done])

    facts, shown = slackwater("status", "--json").facts, slackwater("status").out

    names = ("mre", "last_conflict_epoch", "last_stable_epoch", "conflict_handling")
    assert [tuple(one[name] for name in names) for one in facts["replicas"]] == [
        (4, 5, 3, True),
        (5, 5, 5, False),
    ]
    assert "conflict handling in progress: a\n" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["a", "4", "5", "3", "in", "progress"] in [row[:6] for row in rows]
    assert ["b", "5", "5", "5", "-"] in rows


def test_status_shows_the_oldest_pending_change(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """An agent that died in a transaction holds back all that its replica says; who and since?"""
    state.commit(1, 1, ruv(r1=1), [replica(1), replica(2)])
    now = datetime.now(UTC)
    row = {"batch": 1, "place": 0, "action": "pending"}
    state.append(
        TableName.PENDING,
        {**row, "rid": 1, "csn": csn(2, 1), "time": now - timedelta(hours=1)},
        {**row, "rid": 2, "csn": csn(3, 2), "time": now},
        {
            **row,
            "rid": 2,
            "csn": csn(2, 2),
            "prim_csn": csn(1, 2),
            "time": now - timedelta(hours=3),
        },
        {**row, "rid": 2, "csn": csn(4, 2), "time": now, "action": "waiting"},
    )

    facts, shown = slackwater("status", "--json").facts, slackwater("status").out

    ages = [one["oldest_pending_age_s"] for one in facts["replicas"]]
    assert ages == pytest.approx([3_600, 10_800], abs=60)
    assert [one["oldest_pending"] for one in facts["replicas"]] == [csn(2, 1), csn(1, 2)]
    assert facts["pending"] == {
        "pending": 3,
        "waiting": 1,
        "oldest_age_s": pytest.approx(10_800, abs=60),
        "oldest": csn(1, 2),
    }
    assert f"the oldest was received 3 h 0 min ago, in transaction {csn(1, 2)}" in shown


@pytest.mark.parametrize(("limit", "paused"), [(2, [True, True]), (3, [False, True])])
def test_a_replica_with_too_many_open_transactions_is_paused(
    slackwater: Slackwater, state: WrittenState, config_file: Path, limit: int, paused: list[bool]
) -> None:
    """Uncommitted ones and those above a hole count; what else waits can be any number."""
    state.commit(1, 1, ruv(r1=1), [replica(1), replica(2, opno=7)])
    row = {"batch": 1, "place": 0, "action": "pending", "time": datetime.now(UTC)}
    state.append(
        TableName.PENDING,
        {**row, "rid": 1, "csn": csn(2, 1), "prim_csn": csn(2, 1)},
        {**row, "rid": 1, "csn": csn(3, 1), "prim_csn": csn(2, 1)},
        {**row, "rid": 1, "csn": csn(4, 1), "prim_csn": csn(4, 1)},
        *({**row, "rid": 1, "csn": csn(n, 1), "action": "waiting"} for n in range(5, 20)),
        *(
            {**row, "rid": 2, "csn": csn(n, 2), "action": "waiting", "opno": n}
            for n in range(5, 11)
        ),
    )
    limits = f"[limits]\nopen_transactions = {limit}\n"
    config_file.write_text(limits + config_file.read_text())

    assert [one["paused"] for one in slackwater("status", "--json").facts["replicas"]] == paused


def test_status_shows_how_old_the_last_commit_is(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """A hub that seems to run and does not is what operators fear."""
    state.commit(1, 1, ruv(r1=1), at_ms=round(time.time() * 1000) - 3 * 3_600_000)

    answer = slackwater("status")

    assert answer.code == 1
    assert "3 h 0 min ago, by host:1" in answer.out
    assert first(answer.out) == (
        "problem: no hub is running, or it does not reach Kafka"
        " (last commit 3 h 0 min ago); start it with `slackwater run`, or see its log"
    )


def test_a_fresh_commit_raises_no_doubt(slackwater: Slackwater, state: WrittenState) -> None:
    """A warning that is always there is none."""
    in_sync = [agreement("to-a", 1, 1, ruv(r1=1)), agreement("to-b", 2, 1, ruv(r1=1))]
    state.commit(1, 1, ruv(r1=1), [heard(1), heard(2)], in_sync, at_ms=now_ms())

    answer = slackwater("status")

    assert answer.code == 0
    assert first(answer.out) == "in order: 2 replicas, 2 agreements, nothing needs a person"
    assert "s ago, by host:1" in answer.out
    assert "live" in answer.out
    assert "in_sync" in answer.out
    assert slackwater("status", "--json").facts["problems"] == []


def test_live_is_not_shown_for_stale_facts(slackwater: Slackwater, state: WrittenState) -> None:
    """The hub died an hour ago; what its last commit says of anybody is no longer known."""
    in_sync = [agreement("to-a", 1, 1, ruv(r1=1)), agreement("to-b", 2, 1, ruv(r1=1))]
    hour_ago = now_ms() - 3_600_000
    state.commit(1, 1, ruv(r1=1), [heard(1), heard(2)], in_sync, at_ms=hour_ago)

    shown = slackwater("status").out

    assert shown.count("unknown, was live") == 2
    assert shown.count("unknown, was in_sync") == 2
    assert len(re.findall(r"\b(live|in_sync)\b", shown)) == 4


def test_a_hub_that_ended_in_order_says_so_at_once(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Nobody waits until its facts are old, and the next hub's commit ends the doubt."""
    in_sync = [agreement("to-a", 1, 1, ruv(r1=1)), agreement("to-b", 2, 1, ruv(r1=1))]
    state.commit(1, 1, ruv(r1=1), [heard(1), heard(2)], in_sync, at_ms=now_ms() - 1000)
    write_poll(state.root, LastPoll("host:1", now_ms(), {}, ended=True))

    ended = slackwater("status")
    state.commit(2, 2, ruv(r1=1), [heard(1), heard(2)], in_sync, at_ms=now_ms())
    later = slackwater("status")

    assert (ended.code, later.code) == (1, 0)
    assert "problem: no hub is running: it ended 0 s ago" in first(ended.out)
    assert ended.out.count("unknown, was") == 4


@pytest.mark.parametrize("command", ["status", "level", "doctor"])
def test_whether_a_hub_is_there_is_known_by_its_lock(
    slackwater: Slackwater, state: WrittenState, command: str
) -> None:
    """Who reads that none is running while one starts starts a second one.

    In a container it has the process id of the one before; one that has waited for Kafka starts
    again in the same process. One that holds the lock and says nothing, not even that Kafka is
    away, is stopped or hangs.
    """
    old_ms, me = now_ms() - 60_000, f"the hub with process id {os.getpid()} on {gethostname()}"
    state.commit(1, 1, ruv(r1=1), [heard(1), heard(2)], at_ms=old_ms)
    write_poll(state.root, LastPoll(f"{os.getpid()}-before", old_ms, {}, ended=True))

    with only_hub(state.root):
        starting = slackwater(command).out
        os.utime(state.root / FILE, (old_ms / 1_000 - 1, old_ms / 1_000 - 1))
        write_poll(state.root, LastPoll("1-now", old_ms, {}))
        stopped = slackwater(command).out
        start_again(state.root)
        again = slackwater(command).out
    absent = slackwater(command).out

    for shown in (starting, again):
        assert f"{me} is starting" in " ".join(shown.split())
    assert f"{me} does not answer: it is stopped or hangs" in " ".join(stopped.split())
    assert "no hub is running (" in " ".join(absent.split())
    for shown in (starting, stopped, again):
        assert "no hub is running" not in " ".join(shown.split())
        assert "slackwater run" not in shown


def test_an_idle_hub_that_polls_is_in_order(slackwater: Slackwater, state: WrittenState) -> None:
    """It commits nothing, and what its topics held at its last poll is shown."""
    hour_ago = now_ms() - 3_600_000
    state.commit(1, 1, ruv(r1=1), [heard(1), heard(2)], at_ms=hour_ago)
    write_poll(state.root, LastPoll("host:1", now_ms(), {"slackwater.changes.a": 9}))

    answer = slackwater("status")

    assert answer.code == 0
    assert "2 records of a, as of 0 s ago" in answer.out


def test_a_hub_that_starts_over_young_facts_is_not_in_order(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """The one before was killed a moment ago: what it said last holds no more."""
    state.commit(1, 1, ruv(r1=1), [heard(1), heard(2)], at_ms=now_ms())
    write_poll(state.root, LastPoll("host:1", now_ms() - 1_000, {}))

    with only_hub(state.root):
        answer = slackwater("status")

    assert answer.code == 1
    assert "is starting (" in " ".join(first(answer.out).split())


def test_a_hub_at_work_reads_no_table_to_say_how_it_is(
    state: WrittenState, config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for that all the time; what was ordered counts until a batch has taken it."""
    known, config, read = ruv(r1=1), load(config_file), list[TableName]()
    sent = [agreement("to-a", 1, 1, known), agreement("to-b", 2, 1, known)]
    state.commit(1, 1, known, [heard(1), heard(2)], sent, at_ms=now_ms())
    write_poll(state.root, LastPoll("host:1", now_ms(), {}))
    append_command(open_state(state.root), CommandName.ABORT, csn(1, 1))
    recorded, commit = recorded_facts(config, open_state(state.root)), open_state(state.root).commit
    assert commit is not None
    monkeypatch.setattr(Reader, "table", lambda _, name: read.append(name))

    levels = [
        [one.level for one in hub_status(config, reader, time.time(), recorded).agreements]
        for taken in (0, 1)
        for reader in [Reader(state.root, replace(commit, command_number=taken), None, "host:1")]
    ]

    assert levels == [[False, False], [True, True]]
    assert read == []


def test_a_topic_of_no_replica_is_named(slackwater: Slackwater, state: WrittenState) -> None:
    """Somebody writes there, or did; what is configured is in order all the same."""
    state.commit(1, 1, ruv(r1=1), [heard(1), heard(2)], at_ms=now_ms())
    unknown = ("slackwater.changes.x",)
    write_poll(state.root, LastPoll("host:1", now_ms(), {}, unknown=unknown))

    answer = slackwater("status")

    assert answer.code == 0
    assert "warning: slackwater.changes.x is the topic of no configured replica" in answer.out
    assert slackwater("status", "--json").facts["unknown_topics"] == [*unknown]


def test_an_agent_that_is_not_heard_is_a_problem(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Its last session is in force, and it writes nothing into its topic."""
    in_sync = [agreement("to-a", 1, 1, ruv(r1=1)), agreement("to-b", 2, 1, ruv(r1=1))]
    gone = replica(2, covers=1, seen_ms=now_ms() - 300_000)
    state.commit(1, 1, ruv(r1=1), [heard(1), gone], in_sync, at_ms=now_ms())

    answer = slackwater("status")

    assert answer.code == 1
    assert first(answer.out).startswith("problem: nothing received from b since ")
    assert "start its agent" in first(answer.out)
    assert answer.out.count("no heartbeat, was live") == 1
    assert answer.out.count("no heartbeat, was in_sync") == 1


def test_status_and_level_agree_on_an_agent_that_has_ended(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """It has acknowledged everything, and what was written there since nobody has, nor knows."""
    in_sync = [agreement("to-a", 1, 1, ruv(r1=1)), agreement("to-b", 2, 1, ruv(r1=1))]
    ended = replica(2, covers=1, seen_ms=now_ms(), ended=AgentEnd(now_ms(), 0))
    state.commit(1, 1, ruv(r1=1), [heard(1), ended], in_sync, at_ms=now_ms())

    answer, facts = slackwater("status"), slackwater("status", "--json").facts

    assert first(answer.out).startswith("problem: the agent of b ended at ")
    assert [one["level"] for one in facts["agreements"]] == [False, False]
    assert [one["replica"] for one in facts["unheard"]] == ["b"]


def test_a_hub_that_serves_nobody_reads_along_and_is_in_order(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Another one serves all of its replicas; whose replicas two hubs share, those may differ."""
    one, two = agreement("to-a", 1, 1, ruv(r1=1)), agreement("to-b", 2, 1, ruv(r1=1))
    away = [known.elsewhere(SEEN_MS) for known in (one, two)]
    replicas = [heard(1), heard(2)]

    state.commit(1, 1, ruv(r1=1), replicas, away, at_ms=now_ms())
    assert slackwater("status").code == 0
    assert slackwater("level").code == 1

    state.commit(2, 1, ruv(r1=1), replicas, [one, away[1]], at_ms=now_ms())
    answer = slackwater("status")
    assert first(answer.out).startswith("problem: b is sent nothing: agreement to-b is")
    assert "reads the updates of another hub" in first(answer.out)


def test_a_replica_that_never_said_hello_is_a_problem(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Somebody forgot its agent."""
    silent = replica(2, status=ReplicaStatus.SILENT, seen_ms=0)
    state.commit(1, 1, ruv(r1=1), [heard(1), silent], at_ms=now_ms())

    assert first(slackwater("status").out) == "problem: b has never said hello; start its agent"


def test_bad_input_is_a_problem_until_somebody_decides(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Which replica may differ by it, and what to do."""
    state.commit(1, 1, ruv(r1=1), [heard(1), heard(2)], at_ms=now_ms())
    kept = {"batch": 1, "id": "1-4", "action": "kept", "reason": "json", "rid": 1, "value": b"{"}
    state.append(TableName.QUARANTINE, kept)

    answer = slackwater("status", "--json")

    assert answer.code == 1
    (problem,) = answer.facts["problems"]
    assert problem["what"].startswith("1 record of a in quarantine names no row (json 1)")
    assert "drop --replica a --reason json --yes" in problem["remedy"]
    state.append(TableName.QUARANTINE, kept | {"action": "dropped"})
    assert slackwater("status").code == 0


def test_a_planned_batch_is_shown(slackwater: Slackwater, state: WrittenState) -> None:
    """Where it stays, a hub died in it."""
    state.commit(1, 1, ruv(r1=1))
    state.plan(2)

    assert "batch 2 is planned and not committed" in slackwater("status").out
    assert slackwater("status", "--json").facts["planned_batch"] == 2


def test_before_the_first_commit_status_says_so(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """The hub has just been started, or dies in its first batch each time."""
    state.plan(1)

    answer = slackwater("status")

    assert answer.code == 1
    assert "no batch is committed yet" in first(answer.out)
    assert "none yet; batch 1 is planned" in answer.out
    assert slackwater("status", "--json").facts["age_s"] is None


def test_a_stopped_replica_shows_why(slackwater: Slackwater, state: WrittenState) -> None:
    """What the hub cannot do yet stops that replica loudly."""
    stop = Stop(StopReason.UNSUPPORTED, "snapshot")
    stopped = replica(2, covers=1).stopped(stop, offset=7)
    to_b = agreement("to-b", 2, 1, ruv(r1=1)).stopped(stop)
    state.commit(1, 1, ruv(r1=1), [heard(1), stopped], [to_b], at_ms=now_ms())

    answer = slackwater("status")
    facts = slackwater("status", "--json").facts

    assert answer.code == 1
    assert first(answer.out) == f"problem: b is stopped: unsupported: snapshot; {stop.remedy}"
    assert answer.out.count("unsupported: snapshot") == 3
    assert facts["replicas"][1]["remedy"] == stop.remedy


def test_a_replica_that_left_the_configuration_is_still_shown(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Its changes are in the state, so it is part of it."""
    state.commit(1, 1, ruv(r7=1), [replica(7)])

    assert slackwater("status", "--json").facts["replicas"][-1]["rid"] == 7


def test_an_archive_is_named(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """Who finds more rows there than elsewhere looks here first."""
    config_file.write_text(config_file.read_text("utf-8") + 'send = ["insert", "update"]\n')
    state.commit(1, 1, ruv(r1=3), [heard(1), heard(2)])

    shown, facts = slackwater("status").out, slackwater("status", "--json").facts

    assert "to-b: b is an archive: it keeps what others delete\n" in shown
    assert "to-a:" not in shown
    assert [one["is_archive"] for one in facts["agreements"]] == [False, True]
