"""Claims about `level`, with a real broker for what the hub has not read."""

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from checkpoints.commit.last_poll import LastPoll, ReadAtRest, write_poll
from checkpoints.config import store_comparison
from checkpoints.reading.reader import open_state
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from connectors import wire
from connectors.kafka.embedded.broker import Broker
from connectors.kafka.topics import ensure_topics
from streaming.core.intake.liveness import TopicMove
from streaming.core.model.ruv import Ruv
from streaming.core.model.statuses import AgreementStatus, AwayReason, Stop, StopReason
from streaming.core.records.record import Hello
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.replica_state import AgentEnd
from streaming.core.tracking.resync import CoveredPosition
from streaming.facts.consumers.compared import ComparedRound
from streaming.facts.consumers.divergent import MOST
from tests.checkpoints.written_state import WrittenState, agreement, change_row, replica, ruv
from tests.harness.builders import csn
from tests.harness.topics import TopicEnds
from tests.streaming.cli.conftest import Slackwater
from tests.streaming.cli.test_local import told_locally

KNOWN = ruv(r1=2, r2=2)
IN_SYNC = agreement("to-b", 2, 3, KNOWN)


def now_ms() -> int:
    """The clock of a hub that runs."""
    return round(time.time() * 1000)


@pytest.fixture(autouse=True)
def heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agents of all replicas are heard, but where a test says otherwise."""
    monkeypatch.setattr("tests.checkpoints.written_state.SEEN_MS", now_ms())


@pytest.fixture(autouse=True)
def topics(
    config_file: Path, broker: Broker, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The hub's topics on a real broker; the prefix of their names."""
    text = config_file.read_text().replace("localhost:9092", broker.bootstrap_servers)
    prefix = f'name = "centre"\ntopic_prefix = "{topic_prefix}"'
    config_file.write_text(text.replace('name = "centre"', prefix))
    names = [f"{topic_prefix}changes.{name}" for name in "ab"]
    ensure_topics(broker.bootstrap_servers, {}, names, 1_000)
    monkeypatch.chdir(config_file.parent)
    return topic_prefix


def commit(state: WrittenState, batch: int, a: tuple[int, Ruv], b: tuple[int, Ruv]) -> None:
    """Commit hub epoch 3 with what a and b have acknowledged."""
    agreements = [agreement("to-a", 1, *a), agreement("to-b", 2, *b)]
    replicas = [replica(1, covers=3), replica(2, covers=3)]
    state.commit(batch, 3, KNOWN, replicas, agreements, at_ms=now_ms())


def commit_level(
    state: WrittenState,
    at_ms: int | None = None,
    offsets: Mapping[str, int] | None = None,
    refused: int = 0,
) -> None:
    """Commit hub epoch 3, which a and b have acknowledged, `refused` rows of it refused."""
    agreements = [agreement("to-a", 1, 3, KNOWN), agreement("to-b", 2, 3, KNOWN)]
    replicas = [replica(1, covers=3), replica(2, covers=3)]
    state.commit(
        1,
        3,
        KNOWN,
        replicas,
        agreements,
        at_ms=at_ms or now_ms(),
        offsets=offsets or {},
        totals={"refused": refused},
    )


def quarantined(offset: int, reason: str, **others: object) -> dict[str, object]:
    """A change of row 1 that a wrote and the hub put into quarantine."""
    row = {
        "table": "t",
        "key": '{"id":"1"}',
        "batch": 1,
        "csn": csn(9, 1),
        "action": "kept",
        "rid": 1,
    }
    return {**row, "id": f"1-{offset}", "offset": offset, "reason": reason, **others}


def test_level_is_the_same_covers_and_the_same_ruv(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Then nobody lacks anything: exit 0."""
    commit(state, 1, (3, ruv(r1=2, r2=2)), (3, ruv(r1=2, r2=2)))

    answer = slackwater("level")

    assert answer.code == 0
    assert answer.out.startswith("level: 2 agreements at hub epoch 3")
    assert open_state(state.root).commands() == []


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (
            IN_SYNC.away(AwayReason.PAUSED, 1),
            "away: b, agreement to-b is change_tracking: paused, waits for an operator since 1970-",
        ),
        (
            IN_SYNC.resyncing(CoveredPosition(3, KNOWN), 1),
            "resync: b, agreement to-b is resync, waits for the hub's next batch since",
        ),
        (
            replace(
                IN_SYNC.resyncing(CoveredPosition(3, KNOWN), 1), status=AgreementStatus.IN_SYNC
            ),
            "resync: b, agreement to-b is in_sync, the end of its resync not acknowledged, waits",
        ),
        (
            replace(IN_SYNC, scans=frozenset({"t"})),
            "resync: b, agreement to-b is in_sync, its resync not begun, waits for the hub",
        ),
    ],
)
def test_a_consumer_that_is_away_or_in_resync_is_not_level(
    slackwater: Slackwater, state: WrittenState, known: AgreementState, said: str
) -> None:
    """It may have all hub epochs and other rows, and the next write would not reach it."""
    replicas = [replica(1, covers=3), replica(2, covers=3)]
    agreements = [agreement("to-a", 1, 3, KNOWN), known]
    state.commit(1, 3, KNOWN, replicas, agreements, at_ms=now_ms())

    answer, facts = slackwater("level"), slackwater("level", "--json").facts

    assert answer.code == 1
    assert said in answer.out
    assert [one["agreement"] for one in facts["resyncs"]] == ["to-b"]
    assert [one["name"] for one in facts["agreements"] if not one["level"]] == ["to-b"]


def test_a_resync_that_is_ordered_is_waited_for(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """A script orders a copy and asks `level` at once: yes would be of the time before."""
    commit(state, 1, (3, KNOWN), (3, KNOWN))

    slackwater("resync", "to-b", "--full")

    answer = slackwater("level")
    assert answer.code == 1
    assert (
        "resync: b, agreement to-b is in_sync, resync ordered, waits for the hub's next batch since"
        in answer.out
    )


def heard_of_b(state: WrittenState, **changed: object) -> None:
    """Commit hub epoch 3, which a and b have acknowledged, with b in this state."""
    agreements = [agreement("to-a", 1, 3, KNOWN), IN_SYNC]
    replicas = [replica(1, covers=3), replica(2, covers=3, **changed)]
    state.commit(1, 3, KNOWN, replicas, agreements, at_ms=now_ms())


def test_nobody_says_yes_for_a_replica_whose_agent_has_ended(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Its file may be put back, or written to, and nobody is told."""
    heard_of_b(state, ended=AgentEnd(1_700_000_000_000, 2))

    answer, facts = slackwater("level"), slackwater("level", "--json").facts

    assert answer.code == 1
    assert (
        "cannot say: the agent of b ended at 2023-11-14 22:13:20 UTC and left 2 entries of its"
        " journal unpublished: what was written there since is unknown"
        in " ".join(answer.out.split())
    )
    assert not facts["level"]
    assert [(one["replica"], one["why"]) for one in facts["unheard"]] == [("b", "ended")]


def test_nobody_says_yes_for_a_replica_of_which_nothing_is_heard(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Its agent was killed, or its machine is off: three heartbeats are missing."""
    heard_of_b(state, seen_ms=now_ms() - 31_000)

    answer = slackwater("level")

    assert answer.code == 1
    assert "cannot say: nothing received from b since" in answer.out


def test_a_journal_that_is_still_published_is_not_level(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """The hub has read all that there is, and everybody has it: the rest comes."""
    heard_of_b(state, unpublished=1)

    answer, facts = slackwater("level"), slackwater("level", "--json").facts

    assert answer.code == 1
    assert "unpublished: 1 entry of the journal of b\n" in answer.out
    assert "cannot say" not in answer.out
    assert facts["unpublished"] == {"b": 1}


def test_what_an_agent_left_unpublished_is_said_once(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Its goodbye is the newer word."""
    heard_of_b(state, unpublished=1, ended=AgentEnd(1_700_000_000_000, 2))

    assert slackwater("level", "--json").facts["unpublished"] == {}


def test_what_the_hub_saw_counts_more_than_the_clock_of_an_agent(
    slackwater: Slackwater, state: WrittenState, topics: str
) -> None:
    """One that is an hour slow would otherwise never be level."""
    heard_of_b(state, seen_ms=now_ms() - 3_600_000)
    at_ms = now_ms()
    moves = {f"{topics}changes.b": TopicMove(at_ms - 4_000, at_ms - 2_000)}
    write_poll(state.root, LastPoll("host:1", at_ms, {}, moves=moves))

    assert slackwater("level").code == 0


@pytest.mark.parametrize(
    ("by_ago_ms", "end", "is_heard"),
    [
        (2_000, 5, True),  # it came in that hour, nobody knows when, until the hub has read it
        (31_000, 5, False),  # nothing came behind it
        (2_000, 4, False),  # it is read, and by its own time an hour old
    ],
)
def test_what_a_hub_finds_when_it_starts_counts_from_then_on(
    slackwater: Slackwater,
    state: WrittenState,
    topics: str,
    by_ago_ms: int,
    end: int,
    *,
    is_heard: bool,
) -> None:
    """It was down for an hour, in which the agent of b went on; it has read up to offset 4."""
    at_ms, topic = now_ms(), f"{topics}changes.b"
    agreements, replicas = [agreement("to-a", 1, 3, KNOWN), IN_SYNC], [replica(1), replica(2)]
    replicas[1] = replace(replicas[1], seen_ms=at_ms - 3_600_000)
    state.commit(1, 3, KNOWN, replicas, agreements, at_ms=at_ms, offsets={topic: 4})
    moves = {topic: TopicMove(at_ms - 3_600_000, at_ms - by_ago_ms)}
    write_poll(state.root, LastPoll("host:1", at_ms, {topic: end}, moves=moves))

    facts = slackwater("level", "--json").facts

    assert [one["replica"] for one in facts["unheard"]] == ([] if is_heard else ["b"])


def test_own_changes_count_as_known_to_their_replica(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """A consumer's last word may be older than its own last write."""
    commit(state, 1, (3, ruv(r1=1, r2=2)), (3, ruv(r1=2)))

    assert slackwater("level").code == 0


def test_a_consumer_behind_is_named_with_its_lag(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Exit 1, and the operator knows where to look."""
    commit(state, 1, (3, ruv(r1=2, r2=2)), (1, ruv(r1=1, r2=2)))

    answer = slackwater("level", "--json")

    assert answer.code == 1
    assert answer.facts["level"] is False
    assert [(a["name"], a["lag_epochs"], a["lacking"]) for a in answer.facts["agreements"]] == [
        ("to-a", 0, []),
        ("to-b", 2, ["a"]),
    ]
    assert "to-b" in slackwater("level").out


def test_the_same_covers_with_a_smaller_ruv_is_not_level(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Refreshes alone do not make a consumer complete, nor does a number."""
    commit(state, 1, (3, ruv(r1=2, r2=1)), (3, ruv(r1=2, r2=2)))

    assert slackwater("level").code == 1


def test_a_consumer_that_never_spoke_is_not_level(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """An empty hub and an unknown consumer agree on nothing."""
    state.commit(1, 0, Ruv(), agreements=[agreement("to-a", 1, 0, Ruv())], at_ms=now_ms())

    answer = slackwater("level", "--json")

    assert answer.code == 1
    assert [(a["state"], a["has_all"], a["level"]) for a in answer.facts["agreements"]] == [
        ("in_sync", True, False),
        ("waiting_for_hello", False, False),
    ]


def test_a_stopped_agreement_is_not_level(slackwater: Slackwater, state: WrittenState) -> None:
    """It has what it was sent, and gets nothing more."""
    known = ruv(r1=2, r2=2)
    stopped = agreement("to-b", 2, 3, known).stopped(Stop(StopReason.UNSUPPORTED, "refused"))
    to_a = agreement("to-a", 1, 3, known)
    state.commit(1, 3, known, [replica(1)], [to_a, stopped], at_ms=now_ms())

    answer = slackwater("level")

    assert answer.code == 1
    assert "unsupported: refused" in answer.out


def test_before_the_first_commit_nobody_is_level(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Nothing is known of anybody."""
    state.plan(1)

    answer = slackwater("level")

    assert answer.code == 1
    assert "cannot say: no hub is running" in answer.out
    assert "(no batch is committed yet)" in answer.out


def test_asking_tells_the_hub_once(slackwater: Slackwater, state: WrittenState) -> None:
    """The hub moves lagging covers at once; asking often must not fill the table."""
    commit(state, 1, (3, ruv(r1=2, r2=2)), (1, ruv()))

    slackwater("level")
    slackwater("level")

    commands = open_state(state.root).commands()
    assert [(c["number"], c["command"], c["argument"]) for c in commands] == [(1, "level", None)]


def test_a_command_that_was_taken_is_given_again(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Covers may lag again later."""
    lagging = [agreement("to-a", 1, 0, ruv())]
    state.commit(1, 1, ruv(r1=1, r2=1), [replica(1)], lagging)
    slackwater("level")
    state.commit(2, 1, ruv(r1=1, r2=1), [replica(1)], lagging, command_number=1)

    slackwater("level")

    assert [c["number"] for c in open_state(state.root).commands()] == [1, 2]


def test_waiting_ends_when_all_are_level(slackwater: Slackwater, state: WrittenState) -> None:
    """A script goes on as soon as it may."""
    known = ruv(r1=2, r2=2)
    commit(state, 1, (3, known), (1, ruv()))

    def hub() -> None:
        while not open_state(state.root).commands():
            pass
        commit(state, 2, (3, known), (3, known))

    at_work = threading.Thread(target=hub)
    at_work.start()
    answer = slackwater("level", "--wait", "60")
    at_work.join()

    assert answer.code == 0
    assert "level: 2 agreements" in answer.out


def test_waiting_has_an_end(slackwater: Slackwater, state: WrittenState) -> None:
    """A hub that is down never gets level."""
    commit(state, 1, (3, ruv(r1=2, r2=2)), (1, ruv()))

    assert slackwater("level", "--wait", "0.3").code == 1


def test_a_hub_that_is_down_proves_nothing(slackwater: Slackwater, state: WrittenState) -> None:
    """Everybody had everything when it died; what was written since is in no commit."""
    commit_level(state, at_ms=now_ms() - 37_000)

    answer = slackwater("level")

    assert answer.code == 1
    assert re.match(
        r"cannot say: no hub is running, or it does not reach Kafka \(last commit \d+ s ago\)\n",
        answer.out,
    )
    assert slackwater("level", "--max-age", "3600").code == 0


def test_an_idle_hub_that_polls_is_level(slackwater: Slackwater, state: WrittenState) -> None:
    """It has nothing to commit; its polls say that it runs."""
    commit_level(state, at_ms=now_ms() - 3_600_000)
    write_poll(state.root, LastPoll("host:1", now_ms(), {}))

    answer = slackwater("level")

    assert answer.code == 0, answer.out


def test_a_hub_that_lost_its_broker_proves_nothing(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """It still commits an operator's commands, without a look at any topic."""
    commit_level(state)
    write_poll(state.root, LastPoll("host:1", now_ms() - 40_000, {}))

    answer = slackwater("level")

    assert answer.code == 1
    assert re.match(
        r"cannot say: no hub is running, or it does not reach Kafka"
        r" \(the hub last reached Kafka \d+ s ago, last commit \d+ s ago\)",
        answer.out,
    )


def test_a_broker_that_is_down_leaves_the_answer_open(
    slackwater: Slackwater, state: WrittenState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes may wait in journals and topics."""
    commit_level(state)
    monkeypatch.setenv("SLACKWATER_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:1")

    answer = slackwater("level", "--json")

    assert answer.code == 1
    assert "Kafka at 127.0.0.1:1 did not answer" in answer.facts["cannot_say"][0]
    assert not answer.facts["level"]


def test_records_that_the_hub_has_not_read_are_not_level(
    slackwater: Slackwater, state: WrittenState, broker: Broker, topics: str
) -> None:
    """All consumers have what the hub has, and the hub lacks two writes."""
    commit_level(state, offsets={f"{topics}changes.a": 1})
    with TopicEnds(broker.bootstrap_servers) as ends:
        for _ in range(3):
            ends.send(f"{topics}changes.a", "a", b"{}")

    answer = slackwater("level")

    assert answer.code == 1
    assert "unread: 2 records in the topic of a\n" in answer.out


def test_the_hub_gets_its_time_to_read_heartbeats_however_long_the_first_look_takes(
    slackwater: Slackwater,
    state: WrittenState,
    broker: Broker,
    topics: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever asks on a busy machine is not told no and yes by turns while nobody writes."""
    commit_level(state, offsets={f"{topics}changes.a": 1})
    with TopicEnds(broker.bootstrap_servers) as ends:
        for _ in range(3):
            ends.send(f"{topics}changes.a", "a", b"{}")
    clock_s = iter(range(0, 600, 5))

    def reads(_: float) -> None:
        at_rest = ReadAtRest(1, {f"{topics}changes.a": 3}, {})
        write_poll(state.root, LastPoll("hub", now_ms(), {}, at_rest=at_rest))

    clock = SimpleNamespace(monotonic=lambda: next(clock_s), sleep=reads)
    monkeypatch.setattr("streaming.cli.look.level.time", clock)

    assert slackwater("level").code == 0


def test_a_stopped_replica_without_an_agreement_is_not_level(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """Nothing is sent to it, and nothing that it writes is read."""
    text = config_file.read_text()
    config_file.write_text(text[: text.index('[[agreements]]\nname = "to-b"')])
    stopped = replica(2).stopped(Stop(StopReason.UNSUPPORTED, "snapshot"), 7)
    agreements = [agreement("to-a", 1, 3, KNOWN)]
    state.commit(1, 3, KNOWN, [replica(1), stopped], agreements, at_ms=now_ms())

    answer = slackwater("level")

    assert answer.code == 1
    assert "stopped: b, unsupported: snapshot\n" in answer.out


def test_a_change_that_waits_for_another_is_not_level(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Nobody is sent it, so no consumer lacks it; `status` names what it waits for."""
    agreements = [agreement("to-a", 1, 3, KNOWN), agreement("to-b", 2, 3, KNOWN)]
    behind = replace(replica(1, covers=3), opno=4, opno_above=frozenset({6}))
    state.commit(1, 3, KNOWN, [behind, replica(2, covers=3)], agreements, at_ms=now_ms())
    row = {"batch": 1, "place": 0, "action": "waiting", "rid": 1, "csn": csn(6, 1), "opno": 6}
    state.append(TableName.PENDING, row)

    answer, status = slackwater("level"), slackwater("status")

    assert (answer.code, status.code) == (1, 1)
    assert "waiting: 1 committed change of a, see `status`\n" in answer.out
    said = " ".join(status.out.split())
    assert "1 change of a waiting for the one with opno 5, which the hub has not got" in said


@pytest.mark.parametrize(
    ("reason", "kind"),
    [("skew", "uncarried"), ("session", "quarantined"), ("table", "uncarried")],
)
def test_a_quarantined_change_that_stays_in_its_file_is_not_level(
    slackwater: Slackwater, state: WrittenState, reason: str, kind: str
) -> None:
    """The writer's file has a row that no other has."""
    commit_level(state)
    state.append(TableName.QUARANTINE, quarantined(4, reason))

    answer, shown = slackwater("level", "--json"), slackwater("level").out

    assert answer.code == 1
    (row,) = answer.facts["differing"]
    assert (row["replica"], row["table"], row["key"]) == ("a", "t", '{"id":"1"}')
    assert (row["kind"], row["why"], row["id"]) == (kind, reason, "1-4")
    assert "1 row may differ" in shown


def test_a_record_that_nobody_can_read_names_its_replica_apart(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Which row it wrote is unknown; a damaged heartbeat or a position wrote none.

    Whoever floods the topic of one replica does not keep everybody from a yes among the others; and
    a script that waits for 0 gets none while two databases may differ.
    """
    commit_level(state)
    unread = {"csn": None, "table": None, "key": None}
    state.append(
        TableName.QUARANTINE,
        quarantined(4, "json", value=b"{", **unread),
        quarantined(5, "kind", kind="heartbeat", **unread),
        quarantined(6, "session", kind="applied", **unread),
        quarantined(7, "session", value=b'{"cut', kind="applied", invalid=False, **unread),
    )

    answer, shown, status = (
        slackwater("level", "--json"),
        slackwater("level", "--wait", "60"),
        slackwater("status", "--json"),
    )
    facts = answer.facts
    assert (answer.code, shown.code, status.code) == (3, 3, 1)
    assert (facts["level"], facts["apart"], facts["differing"]) == (False, True, [])
    assert facts["unnamed"] == status.facts["unnamed"] == {"a": {"json": 1}}
    for agreements in (facts["agreements"], status.facts["agreements"]):
        assert {one["consumer"]: one["level"] for one in agreements} == {"a": False, "b": True}
    assert shown.out.startswith("level, but for a: hub epoch 3")
    assert "1 record of a in quarantine names no row (json 1)" in shown.out
    assert "`slackwater quarantine drop --replica a --reason json --yes`" in shown.out


def test_a_named_row_that_differs_beside_junk_is_not_level(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """However much junk stands before it."""
    commit_level(state)
    unread = {"csn": None, "table": None, "key": None, "invalid": True}
    junk = [quarantined(n, "json", value=b"{", **unread) for n in range(10, 10 + 2 * MOST)]
    state.append(TableName.QUARANTINE, *junk, quarantined(9_000, "skew"))

    answer = slackwater("level", "--json")

    assert (answer.code, answer.facts["apart"]) == (1, False)
    assert [row["id"] for row in answer.facts["differing"]] == ["1-9000"]
    assert answer.facts["unnamed"] == {"a": {"json": 2 * MOST}}
    assert not any(one["level"] for one in answer.facts["agreements"])


REFRESH = {"kind": "refresh", "to": 1, "rid": 2, "verdict": None}
SET_RIGHT = {
    "a refresh of its batch": (1, REFRESH),
    "a refresh that came later": (2, REFRESH),
    "a later change of its own": (1, {"rid": 1, "offset": 5, "csn": csn(90, 1)}),
    "a change of another replica": (2, {"rid": 2, "offset": 1}),
}
NOT_SET_RIGHT = {
    "a refresh of another replica": (2, {**REFRESH, "to": 2}),
    "a refresh of another row": (2, {**REFRESH, "key": '{"id":"2"}'}),
    "an earlier change of its own": (1, {"rid": 1, "offset": 3}),
    "an older change of its own that came late": (1, {"rid": 1, "offset": 5, "csn": csn(1, 1)}),
    "a change that lost": (2, {"rid": 2, "offset": 1, "verdict": "rejected"}),
    "a change before it": (0, {"rid": 2, "offset": 9}),
}


@pytest.mark.parametrize(
    ("batch", "entry", "code"),
    [
        *(pytest.param(*one, 0, id=name) for name, one in SET_RIGHT.items()),
        *(pytest.param(*one, 1, id=name) for name, one in NOT_SET_RIGHT.items()),
    ],
)
def test_a_row_that_was_set_right_at_its_origin_is_level(
    slackwater: Slackwater, state: WrittenState, batch: int, entry: dict[str, object], code: int
) -> None:
    """The record stays in quarantine for its content; the files are the same."""
    commit_level(state)
    commit(state, 2, (3, KNOWN), (3, KNOWN))
    commit(state, 3, (3, KNOWN), (3, KNOWN))
    entry = {**change_row(batch + 1, 2, 0, csn(5, 2)), **entry}
    state.append(TableName.CHANGELOG, entry)
    state.append(TableName.QUARANTINE, quarantined(4, "skew", batch=2))

    answer = slackwater("level")

    assert answer.code == code, answer.out


@pytest.mark.parametrize("action", ["released", "dropped"])
def test_what_an_operator_decided_is_level(
    slackwater: Slackwater, state: WrittenState, action: str
) -> None:
    """A released record is a change of the hub, a dropped one is closed."""
    commit_level(state)
    state.append(
        TableName.QUARANTINE, quarantined(4, "json"), quarantined(4, "json", action=action)
    )

    assert slackwater("level").code == 0


def test_a_record_of_an_old_session_that_came_again_is_level(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """An agent that was replaced publishes what its successor published too."""
    commit_level(state)
    state.append(TableName.CHANGELOG, change_row(1, 1, 0, csn(9, 1)) | {"offset": 2})
    state.append(TableName.QUARANTINE, quarantined(4, "session"))

    assert slackwater("level").code == 0


def test_level_and_status_name_columns_that_stay_in_one_database(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """The replicas differ in them although all is level: only the last hello's count."""
    position = (0, 3, 1, KNOWN, None)
    columns = ("t.colour", "t.größe")
    hellos = [
        (1, 1, Hello(*position, lost=False, unreplicated=("t.old",))),
        (1, 5, Hello(*position, lost=False, unreplicated=columns)),
        (2, 1, Hello(*position, lost=False)),
    ]
    state.append(
        TableName.EVENTS,
        *(
            {"batch": 1, "rid": rid, "offset": offset, "kind": "hello", "outcome": "taken"}
            | {"value": wire.encode("s", hello).decode()}
            for rid, offset, hello in hellos
        ),
    )
    commit_level(state)

    answer = slackwater("level")

    assert answer.code == 0
    assert answer.out.splitlines()[1:] == [
        f"warning: a: column {name} is not replicated, because it is not configured"
        for name in columns
    ]
    for command in ("level", "status"):
        assert slackwater(command, "--json").facts["unreplicated"] == {"a": list(columns)}
    assert "warning: a: column t.colour is not replicated" in slackwater("status").out


@pytest.mark.parametrize(("differing", "behind_s"), [(3, None), (0, None), (3, 90.0)])
def test_level_names_who_was_found_with_other_rows(
    slackwater: Slackwater, state: WrittenState, differing: int, behind_s: float | None
) -> None:
    """A yes is of what was carried; who reads it alone would take the rows for equal."""
    found = ComparedRound("to-a", 9, differing, more_differ=False, in_flight=0, seconds=1.0)
    round_ = replace(found, behind_s=behind_s)
    store_comparison(StateStore(state.root), round_.text(), round(time.time() * 1000))
    commit_level(state)

    answer = slackwater("level")
    other_rows = slackwater("level", "--json").facts["other_rows"]

    assert answer.code == 0
    is_named = differing > 0 and behind_s is None
    assert [one["differing"] for one in other_rows.values()] == [3] * is_named
    assert ("warning: a has other rows than the hub: compared" in answer.out) == is_named


def test_local_writes_are_named_and_level_says_yes(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """What was written everywhere else is everywhere; the last word of an agent counts."""
    told_locally(state, 1, t=(2, 1_700_000_000_000))
    told_locally(state, 5, t=(3, 1_700_000_000_000), u=(1, 2**63 - 1))
    commit_level(state)

    answer, status = slackwater("level"), slackwater("status")

    assert (answer.code, status.code) == (0, 0)
    for out in (answer.out, status.out):
        said = " ".join(out.split())
        assert "local writes at a: table t, 3 rows, last at 2023-11-14 22:13:20 UTC" in said
        assert "last at 9999-12-31" in said
    assert slackwater("level", "--json").facts["local_writes"] == [
        {"replica": "a", "table": "t", "rows": 3, "last_at": "2023-11-14T22:13:20Z"},
        {"replica": "a", "table": "u", "rows": 1, "last_at": "9999-12-31T23:59:59Z"},
    ]


def refused(rid: int, **others: object) -> dict[str, object]:
    """A row that the database of a replica refused."""
    row = {"batch": 0, "id": "r2-5", "kind": "refused", "hub_epoch": 2, "loser_rid": rid}
    facts = {"table": "t", "key": '{"id":"1"}', "code": "unique", "text": "no", "attempts": 1}
    return {**row, **facts, "resolution": "open", **others}


@pytest.mark.parametrize(
    "sent", ["", "rows.t = 'id > 0'", 'send = ["insert", "update"]'], ids=["all", "some", "archive"]
)
def test_a_refused_row_is_not_level(
    slackwater: Slackwater, config_file: Path, state: WrittenState, sent: str
) -> None:
    """Its consumer acknowledged everything, and lacks the row nevertheless."""
    text = config_file.read_text()
    config_file.write_text(text.replace('name = "to-b"', f'name = "to-b"\n{sent}'))
    commit_level(state, refused=1)
    state.append(TableName.CONFLICTS, refused(2))

    answer, status = slackwater("level"), slackwater("status")
    (row,) = slackwater("level", "--json").facts["differing"]

    assert (answer.code, status.code) == (1, 1)
    assert "1 row may differ from the hub's, see `slackwater conflicts show ID`" in answer.out
    assert (row["replica"], row["kind"], row["id"]) == ("b", "refused", "r2-5")
    assert (row["table"], row["key"], row["why"]) == ("t", '{"id":"1"}', "unique: no")
    assert "the database of b refuses 1 row; " in status.out


@pytest.mark.parametrize(
    "rows",
    [
        [refused(2), refused(2, batch=1, resolution="applied")],
        [refused(2, table="gone")],
        [refused(9)],
    ],
    ids=["applied", "table is not configured", "replica is not configured"],
)
def test_a_refused_row_that_its_consumer_does_not_lack_is_level(
    slackwater: Slackwater, state: WrittenState, rows: list[dict[str, object]]
) -> None:
    """It took a later version, or is not sent the row any more."""
    commit_level(state, refused=1)
    state.append(TableName.CONFLICTS, *rows)

    assert slackwater("level").code == 0


def test_nobody_can_say_while_a_packet_is_not_taken(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """It may hold what nobody else has: one that waits for another, or one that is damaged."""
    commit_level(state)
    assert slackwater("level").code == 0
    waits = {"packet changes-b-1.packet is not taken": "it waits for place 11"}
    write_poll(state.root, LastPoll("host:1", now_ms(), {}, packets=waits))

    answer = slackwater("level")

    assert answer.code == 1
    said = " ".join(answer.out.split())
    assert "cannot say: packet changes-b-1.packet is not taken: it waits for place 11" in said
