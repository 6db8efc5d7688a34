"""`status` calls no agreement level while `level` says no, whatever keeps it back."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.commit.last_poll import LastPoll, read_poll, write_poll
from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from streaming.config.sources.load import load
from streaming.core.access.root import BucketRoot, S3Access
from streaming.core.model.command import CommandName
from streaming.core.model.statuses import ReplicaStatus
from streaming.core.state.replica_state import AgentEnd
from streaming.facts.consumers.level import HubLevel, hub_level
from streaming.facts.freshness import MAX_AGE_S
from streaming.facts.status.hub import hub_status
from streaming.facts.status.recorded import RecordedFacts, recorded_facts
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.harness.builders import csn

KNOWN = ruv(r1=2, r2=2)
TOPIC = "slackwater.changes.a"
ENDS = {TOPIC: 7}
"""Where the topic ends that the hub has read up to there (WrittenState)."""

Spoil = Callable[[WrittenState], None]


def now_ms() -> int:
    """The clock of a hub that runs."""
    return round(time.time() * 1000)


def commit(
    state: WrittenState,
    at_ms: int = 0,
    ends: dict[str, int] | None = None,
    totals: dict[str, int] | None = None,
    batch: int = 1,
    **of_a: object,
) -> None:
    """A hub that all have acknowledged, and that has just polled; `of_a`: of the replica a."""
    at_ms = at_ms or now_ms()
    agreements = [agreement("to-a", 1, 3, KNOWN), agreement("to-b", 2, 3, KNOWN)]
    replicas = [replica(rid, covers=3, seen_ms=at_ms) for rid in (1, 2)]
    replicas[0] = replace(replicas[0], **of_a)  # type: ignore[arg-type]
    more = {"at_ms": at_ms, "offsets": ENDS, "totals": totals or {"refused": 1}}
    state.commit(batch, 3, KNOWN, replicas, agreements, **more)  # type: ignore[arg-type]
    write_poll(state.root, LastPoll("host:1", at_ms, ends or ENDS))


def unread(state: WrittenState) -> None:
    """The poll found a record that no batch has read."""
    commit(state, ends={TOPIC: 8})


def waiting(state: WrittenState) -> None:
    """A committed change waits for the one before it."""
    commit(state)
    row = {"batch": 1, "place": 0, "action": "waiting", "rid": 1, "csn": csn(3, 1)}
    state.append(TableName.PENDING, row)


def stopped(state: WrittenState) -> None:
    """The topic of a is not read."""
    commit(state, status=ReplicaStatus.INPUT_LOST)


def unpublished(state: WrittenState) -> None:
    """The agent of a has more in its journal."""
    commit(state, unpublished=3)


def snapshot(state: WrittenState) -> None:
    """The agent of a tells the rows that its database had; none of them is in its topic yet."""
    commit(state, snapshot="5e1f")


def ended(state: WrittenState) -> None:
    """Nobody knows what is written at a."""
    commit(state, ended=AgentEnd(now_ms(), 0))


def ordered(state: WrittenState) -> None:
    """A row is sent again with the next batch; what was looked at changes none."""
    commit(state)
    for number, name in enumerate((CommandName.LEVEL, CommandName.REPAIR), start=1):
        row = {
            "number": number,
            "kind": "command",
            "command": name.value,
            "argument": "",
            "seen": 3,
        }
        state.append(TableName.CONFIG, row)


def stale(state: WrittenState) -> None:
    """Nobody knows what has happened since."""
    commit(state, at_ms=now_ms() - 60_000)


def quarantined(reason: str) -> Spoil:
    """A row of a is in its database only."""

    def spoil(state: WrittenState) -> None:
        commit(state)
        row = {"table": "t", "key": '{"id":"1"}', "csn": csn(9, 1), "rid": 1, "offset": 4}
        of_it = {"batch": 1, "id": "1-4", "action": "kept", "reason": reason}
        state.append(TableName.QUARANTINE, row | of_it)

    return spoil


def refused(state: WrittenState) -> None:
    """The database of a lacks a row."""
    commit(state)
    row = {"batch": 1, "id": "r2-5", "kind": "refused", "hub_epoch": 2, "loser_rid": 1}
    of_it = {"table": "t", "key": '{"id":"1"}', "resolution": "open", "code": "unique"}
    state.append(TableName.CONFLICTS, row | of_it)


def answers(
    config_file: Path, state: WrittenState, recorded: RecordedFacts | None = None
) -> tuple[HubLevel, list[bool]]:
    """What `level` says when the topics end where the last poll found it, and `status`."""
    config, reader, now_s = load(config_file), open_state(state.root), time.time()
    poll = read_poll(state.root)
    assert poll is not None
    status = hub_status(config, reader, now_s, recorded)
    level = hub_level(config, reader, lambda: poll.ends, now_s, MAX_AGE_S)
    return level, [one.level for one in status.agreements]


@pytest.fixture(autouse=True)
def here(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configuration names its state by a path below it."""
    monkeypatch.chdir(config_file.parent)


def test_a_status_names_the_bucket_of_the_state_without_its_keys(
    config_file: Path, state: WrittenState
) -> None:
    """The document goes to everybody who may read the port."""
    config = load(config_file)
    bucket = BucketRoot("bucket", "prefix", S3Access(secret_access_key="Planted"))
    hub = config.hub.model_copy(update={"state": bucket})

    found = hub_status(
        config.model_copy(update={"hub": hub}), open_state(state.root), time.time()
    ).document()

    assert found["state"] == "s3://bucket/prefix"
    assert "Planted" not in str(found)


def test_all_are_level_if_nothing_keeps_them_back(config_file: Path, state: WrittenState) -> None:
    """Otherwise what follows would prove nothing."""
    commit(state)

    level, agreements = answers(config_file, state)

    assert level.level
    assert agreements == [True, True]


@pytest.mark.parametrize(
    ("spoil", "are_level"),
    [
        (unread, [False, False]),
        (waiting, [False, False]),
        (unpublished, [False, False]),
        (snapshot, [False, False]),
        (ordered, [False, False]),
        (stopped, [False, False]),
        (ended, [False, False]),
        (stale, [False, False]),
        (quarantined("table"), [False, False]),
        (quarantined("session"), [False, False]),
        (refused, [False, True]),
    ],
)
def test_none_is_level_while_something_is_not_settled(
    config_file: Path, state: WrittenState, spoil: Spoil, are_level: list[bool]
) -> None:
    """All have acknowledged the hub's position; a row that a database refused is lacking there."""
    spoil(state)

    level, agreements = answers(config_file, state)

    assert not level.level
    assert agreements == are_level
    assert [one.level for one in level.agreements] == are_level
    assert all(one.has_all for one in level.agreements)


def test_what_is_not_read_yet_proves_nothing(config_file: Path, state: WrittenState) -> None:
    """A hub that has just started shows its page before it has read its tables."""
    commit(state)
    known = recorded_facts(load(config_file), open_state(state.root))

    assert answers(config_file, state, RecordedFacts())[1] == [False, False]
    assert answers(config_file, state, known)[1] == [True, True]


@pytest.mark.parametrize("what", ["quarantined", "refused"])
def test_what_was_read_before_a_row_came_to_differ_proves_nothing(
    config_file: Path, state: WrittenState, what: str
) -> None:
    """A hub reads its tables only while somebody looks, and the first look may be an old one."""
    commit(state)
    known = recorded_facts(load(config_file), open_state(state.root))

    before = answers(config_file, state, known)[1]
    commit(state, totals={"refused": 1, what: 2}, batch=2)
    behind = answers(config_file, state, known)[1]

    assert (before, behind) == ([True, True], [False, False])
