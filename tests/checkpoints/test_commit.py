"""The commit protocol on real Delta tables."""

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from checkpoints.commit.epochs import Checkpoint, Plan, plan_of
from checkpoints.commit.faults import FaultPoint, parse_fault
from checkpoints.commit.protocol import BatchOutcome, Ledger, create_state, open_ledger, run
from checkpoints.config import KEY, next_commands
from checkpoints.root import open_delta
from checkpoints.store import StateStore, rows_of
from checkpoints.tables import TableName
from streaming.core.model.command import Command, CommandName
from streaming.core.model.errors import ConfigError, OvertakenError, StateError
from streaming.core.state.hub_state import HubState
from tests.checkpoints.written_state import WrittenState, change_row

GENESIS = Checkpoint(HubState(1, "00000001000000000000"), {"t": 0}, {}, 1)
COMMAND = Command(7, CommandName.LEVEL, None)


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    """An empty state that was founded."""
    opened = StateStore(tmp_path / "state")
    create_state(opened, GENESIS, "first")
    return opened


def plan(batch: int, to: int = 1) -> Plan:
    """A plan that reads up to `to`."""
    return Plan(batch, 1_000 * batch, 1, {"t": 0}, {"t": to}, (COMMAND,))


def outcome(ledger: Ledger, planned: Plan) -> BatchOutcome:
    """A batch that writes one event."""
    event = {"batch": planned.batch, "kind": "heartbeat", "offset": planned.offsets_to["t"]}
    state = replace(ledger.last.state, batch=planned.batch)
    after = replace(ledger.last, state=state, offsets=planned.offsets_to, at_ms=planned.at_ms)
    return BatchOutcome({TableName.EVENTS: rows_of(TableName.EVENTS, [event])}, after)


def events(store: StateStore) -> list[int]:
    """The batches of the events that are there."""
    store.refreshed(TableName.EVENTS)
    batches: list[int] = store.read(TableName.EVENTS)["batch"].to_pylist()
    return sorted(batches)


class DiedError(Exception):
    """The process ended at a fault point."""


def test_the_steps_stand_in_their_order(store: StateStore) -> None:
    """Publishing before the commit row, or writing before the plan, would lose or double."""
    passed: list[str] = []
    ledger = open_ledger(store, "hub", lambda point: passed.append(point.value))

    run(ledger, plan(1), lambda p: outcome(ledger, p), lambda _: passed.append("publish"))

    assert passed == [
        "after_plan",
        "after_read",
        "after_events",
        "before_commit",
        "after_commit",
        "publish",
        "after_publish",
    ]
    assert open_ledger(store, "next").last.offsets == {"t": 1}


@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.AFTER_PLAN,
        FaultPoint.AFTER_READ,
        FaultPoint.AFTER_EVENTS,
        FaultPoint.BEFORE_COMMIT,
    ],
)
def test_a_batch_that_died_is_finished_from_its_plan(store: StateStore, point: FaultPoint) -> None:
    """A second plan would read other input into tables that have the first one's rows."""

    def die(here: FaultPoint) -> None:
        if here is point:
            raise DiedError

    dead = open_ledger(store, "dead", die)
    with pytest.raises(DiedError):
        run(dead, plan(1), lambda p: outcome(dead, p), lambda _: None)

    ledger = open_ledger(store, "next")
    assert ledger.unfinished is not None
    again = plan_of(ledger.unfinished, {7: COMMAND})
    run(ledger, again, lambda p: outcome(ledger, p), lambda _: None)

    assert again == plan(1)
    assert events(store) == [1]
    assert open_ledger(store, "later").unfinished is None


def test_a_hub_that_was_overtaken_stops(store: StateStore) -> None:
    """Two hubs that both publish would send a consumer two different histories."""
    slow, quick = open_ledger(store, "slow"), open_ledger(store, "quick")
    run(quick, plan(1), lambda p: outcome(quick, p), lambda _: None)

    with pytest.raises(OvertakenError, match=r"another hub works on the state.*slow"):
        slow.write_plan(plan(1))
    assert events(store) == [1]


def test_a_hub_that_was_overtaken_stops_with_tables_opened_anew(store: StateStore) -> None:
    """They have seen what the other hub wrote; the hub itself has not."""
    slow, quick = open_ledger(store, "slow"), open_ledger(store, "quick")
    run(quick, plan(1), lambda p: outcome(quick, p), lambda _: None)
    quick.reopen()
    slow.reopen()

    with pytest.raises(OvertakenError):
        slow.write_plan(plan(1))
    run(quick, plan(2), lambda p: outcome(quick, p), lambda _: None)
    assert events(store) == [1, 2]


@pytest.mark.parametrize("planned", [False, True])
def test_a_hub_that_slept_until_its_log_was_gone_stops(store: StateStore, *, planned: bool) -> None:
    """It was overtaken, whatever Delta says of files that are missing."""
    slept = open_ledger(store, "slept")
    if planned:
        slept.write_plan(plan(1))
    other = open_ledger(store, "other")
    for batch in range(1, 5):
        run(other, plan(batch), lambda p: outcome(other, p), lambda _: None)
    epochs = DeltaTable(store.uri(TableName.EPOCHS))
    epochs.create_checkpoint()
    for entry in Path(epochs.table_uri).glob("_delta_log/*.json"):
        os.utime(entry, (0, 0))
    epochs.cleanup_metadata()

    with pytest.raises(OvertakenError):
        (slept.check_ours if planned else slept.write_plan)(plan(1))

    assert events(store) == [1, 2, 3, 4]
    assert open_ledger(store, "next").last.state.batch == 4


def test_a_hub_that_slept_after_its_plan_writes_nothing_twice(store: StateStore) -> None:
    """SIGSTOP lasts as long as it likes; the other hub finished the plan meanwhile."""
    published: list[str] = []
    slept = open_ledger(store, "slept")
    slept.write_plan(plan(1))
    other = open_ledger(store, "other")
    run(other, plan(1), lambda p: outcome(other, p), lambda _: published.append("other"))
    slept.unfinished = {"batch": 1}

    with pytest.raises(OvertakenError):
        run(slept, plan(1), lambda p: outcome(slept, p), lambda _: published.append("slept"))

    assert published == ["other"]
    assert events(store) == [1]


def test_state_of_a_newer_format_is_refused(store: StateStore, tmp_path: Path) -> None:
    """An old hub that guessed at new state would damage it."""
    rows = store.read(TableName.EPOCHS)
    column = rows.schema.get_field_index("format")
    newer = StateStore(tmp_path / "newer")
    newer.create()
    raised = rows.set_column(column, "format", pa.array([99], pa.int32()))
    newer.append_once(TableName.EPOCHS, raised, "epochs", 1)

    with pytest.raises(StateError, match="format 99"):
        open_ledger(newer, "hub")


def test_a_key_is_appended_once(store: StateStore) -> None:
    """Deltalake records an application transaction but does not look at it."""
    row = rows_of(TableName.EVENTS, [{"batch": 1}])

    assert store.append_once(TableName.EVENTS, row, "events:1", 1)
    assert not store.append_once(TableName.EVENTS, row, "events:1", 1)
    assert not StateStore(store.root).append_once(TableName.EVENTS, row, "events:1", 1)
    assert events(store) == [1]


def test_an_unfounded_state_is_no_state(tmp_path: Path) -> None:
    """A folder with empty tables must not be taken for a hub without history."""
    store = StateStore(tmp_path)
    store.create()

    with pytest.raises(StateError, match="has no commit"):
        open_ledger(store, "hub")


def test_fault_texts_name_known_points() -> None:
    """A misspelled point would make a test of faults pass without one."""
    assert parse_fault(None)(FaultPoint.AFTER_PLAN) is None
    with pytest.raises(ConfigError, match="names no fault point"):
        parse_fault("after_lunch")


def test_a_plan_with_a_command_of_another_version_is_not_finished(store: StateStore) -> None:
    """A batch that leaves out what its plan took would differ from what its hub had begun."""
    ledger = open_ledger(store, "newer")
    ledger.write_plan(plan(1))

    unfinished = open_ledger(store, "older").unfinished

    assert unfinished is not None
    with pytest.raises(StateError, match="takes command 7, which this version does not know"):
        plan_of(unfinished, {})


def test_a_command_of_another_version_is_left_out(store: StateStore) -> None:
    """An operator's newer client does not stop a hub that works."""
    rows = [
        {
            "number": 1,
            "kind": "command",
            "command": "from_a_newer_client",
            "argument": "9",
            "seen": 0,
        },
        {"number": 2, "kind": "command", "command": "drop", "argument": "1-5", "seen": 4},
    ]
    store.append_once(TableName.CONFIG, rows_of(TableName.CONFIG, rows), KEY, 2)

    assert next_commands(store, 0) == (Command(2, CommandName.DROP, "1-5", 4),)


def test_a_ledger_reads_tables_that_hold_what_its_commit_names(tmp_path: Path) -> None:
    """A hub that opened a table before another one committed would publish without its rows."""
    late = StateStore(tmp_path)
    late.create()
    assert late.read(TableName.CHANGELOG).num_rows == 0
    first = StateStore(tmp_path)
    create_state(first, Checkpoint(HubState(1, "g"), {}, {}, 1), "first")
    written = WrittenState(tmp_path)
    written.append(TableName.CHANGELOG, change_row(1, 1, 0, "6553f100000100010000"))

    open_ledger(late, "second")

    assert late.read(TableName.CHANGELOG).num_rows == 1


def test_a_purge_beside_a_batch_overtakes_nobody(store: StateStore) -> None:
    """Delta refuses what was read before rows were deleted, also where only a purge did that."""
    ledger = open_ledger(store, "hub")
    run(ledger, plan(1), lambda p: outcome(ledger, p), lambda _: None)
    run(ledger, plan(2), lambda p: outcome(ledger, p), lambda _: None)

    open_delta(store.root, TableName.EPOCHS).delete("batch > 0 AND batch < 2")
    run(ledger, plan(3), lambda p: outcome(ledger, p), lambda _: None)

    assert open_ledger(store, "next").last.state.batch == 3
