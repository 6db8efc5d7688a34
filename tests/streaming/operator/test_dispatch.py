"""An operator's commands: each has its own effect, and one batch carries out all of its plan."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Never

import pytest

from checkpoints.commit.epochs import Plan
from checkpoints.config import next_commands
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.conflict.masked import NONE_MASKED, MaskedTables
from streaming.core.intake.intake import Intake
from streaming.core.model.change import Change, Op, RowKey
from streaming.core.model.command import Command, CommandName, RowRepair, UndoOrder
from streaming.core.model.row import ALL_OFFSETS
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.quarantine_budget import KeptSum
from streaming.operator.dispatch import CommandEffects, carry_out
from streaming.operator.undo import UndoneRows, undone_rows
from tests.checkpoints.written_state import WrittenState, change_row, ruv
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import intake_of_session

HUB = 99
LOSER = change(7, "k", "lost")
QUARANTINED = {"batch": 1, "id": "1-5", "action": "kept", "rid": 1, "offset": 5, "value": b"{"}
CONFLICT = {
    "batch": 1,
    "id": "3-0",
    "table": LOSER.table,
    "key": LOSER.key,
    "after": LOSER.after,
    "resolution": "open",
}


@pytest.fixture
def written(tmp_path: Path) -> WrittenState:
    """A state with one record in quarantine and one open conflict."""
    state = WrittenState(tmp_path / "state").create()
    state.append(TableName.QUARANTINE, QUARANTINED)
    state.append(TableName.CONFLICTS, CONFLICT)
    return state


@pytest.fixture
def store(written: WrittenState) -> StateStore:
    """The same, as a hub opens it."""
    return StateStore(written.root)


def carried_out(
    store: StateStore,
    *commands: Command,
    offsets: Mapping[str, int] | None = None,
    purge_epoch: int = 0,
    undone: UndoneRows = undone_rows,
    masked: MaskedTables = NONE_MASKED,
) -> tuple[Intake, CommandEffects]:
    """A batch's intake behind these commands, and their other effects."""
    intake = intake_of_session(change(10, tx=10), change(12))
    intake.state = replace(intake.state, purge_epoch=purge_epoch)
    plan = Plan(2, 2_000_000, 1, offsets or {}, {}, commands)
    topics = {"changes.a": 1}
    effects = carry_out(
        *(plan, intake, store, _unused, _unused),
        hub_rid=HUB,
        topics=topics,
        undone=undone,
        masked=masked,
    )
    return intake, effects


def _unused(_: object) -> Never:
    raise AssertionError("only a release reads and parses records again")


def own_changes(intake: Intake) -> list[Change]:
    """The changes that the hub made itself."""
    return [one.change for (one,) in intake.eligible if one.change.rid == HUB]


def test_without_commands_nothing_happens(store: StateStore) -> None:
    """Nearly every batch has none."""
    intake, effects = carried_out(store)

    assert (effects.released.rows.num_rows, effects.nudged) == (0, False)
    assert effects.resolved.rows(2, ()).num_rows == 0
    assert (intake.repairs, intake.eligible) == ([], [])


def test_level_moves_every_lagging_covers(store: StateStore) -> None:
    """It is the only effect that sending asks for."""
    assert carried_out(store, Command(1, CommandName.LEVEL, None))[1].nudged


@pytest.mark.parametrize(
    ("offsets", "behind"), [({"changes.a": 8}, 7), ({"changes.gone": 8}, ALL_OFFSETS)]
)
def test_abort_refreshes_behind_what_was_read(
    store: StateStore, offsets: dict[str, int], behind: int
) -> None:
    """What stands in the topic up to there was written before the operator's word."""
    abort = Command(1, CommandName.ABORT, csn(10, 1))

    intake, _ = carried_out(store, abort, offsets=offsets)

    assert [repair.offset for repair in intake.repairs] == [behind]
    assert [one.change.csn for (one,) in intake.eligible] == [csn(12, 1)]


def test_drop_ends_what_is_kept(store: StateStore) -> None:
    """The record's bytes stay where they were first kept."""
    _, effects = carried_out(store, Command(1, CommandName.DROP, "1-5"))

    rows = effects.released.rows.select(["batch", "id", "action", "value"]).to_pylist()
    assert rows == [{"batch": 2, "id": "1-5", "action": "dropped", "value": None}]
    assert effects.released.gone == {1: KeptSum(1, len(b"{"))}


def quarantined_write(offset: int, **more: object) -> dict[str, object]:
    """A row of table `quarantine`: a write of a's agent in a session that was over."""
    row = {**QUARANTINED, "id": f"1-{offset}", "offset": offset, "reason": "session"}
    return {**row, "csn": csn(offset, 1), "table": "t", "key": '{"k":"k"}', **more}


def drops(store: StateStore, *ids: str) -> list[tuple[int, RowKey, int, str]]:
    """What a batch that drops these records refreshes."""
    commands = [Command(number, CommandName.DROP, id_) for number, id_ in enumerate(ids, 1)]
    intake, _ = carried_out(store, *commands, offsets={"changes.a": 8})
    return [(one.rid, one.row, one.offset, one.cause) for one in intake.repairs]


def test_drop_takes_a_change_back_at_its_origin(written: WrittenState) -> None:
    """Once per row, behind what was read; a record of no known row changes nothing."""
    store = StateStore(written.root)
    written.append(
        TableName.QUARANTINE,
        quarantined_write(6),
        quarantined_write(7),
        quarantined_write(8, key='{"k":"kept"}'),
        quarantined_write(9, key='{"no":"key"}'),
        quarantined_write(10, rid=HUB, id="99-10"),
    )
    written.commit(1, 1, ruv(r1=1))

    found = drops(store, "1-5", "1-6", "1-7", "1-9", "99-10")

    assert found == [(1, ("t", '{"k":"k"}'), 7, "session")]


def test_drop_leaves_a_row_that_was_set_right(written: WrittenState) -> None:
    """The change came again and was judged, or the row was refreshed since."""
    store = StateStore(written.root)
    written.append(
        TableName.QUARANTINE,
        quarantined_write(6),
        quarantined_write(7, key='{"k":"other"}', reason="late"),
    )
    again = change_row(1, 1, 0, csn(6, 1)) | {"key": '{"k":"k"}', "verdict": "rejected"}
    refresh = {"batch": 1, "hub_epoch": 1, "place": 9, "kind": "refresh", "to": 1}
    row = {"table": "t", "key": '{"k":"other"}'}
    written.append(TableName.CHANGELOG, again, refresh | row)
    written.commit(1, 1, ruv(r1=1))

    assert drops(store, "1-6", "1-7") == []


def test_drop_leaves_a_row_of_which_a_newer_record_is_kept(written: WrittenState) -> None:
    """What stands at its writer is the newer one, of which nobody has said anything yet."""
    store = StateStore(written.root)
    written.append(TableName.QUARANTINE, quarantined_write(6), quarantined_write(7))
    written.commit(1, 1, ruv(r1=1))

    assert drops(store, "1-6") == []
    assert drops(store, "1-7") == [(1, ("t", '{"k":"k"}'), 7, "session")]


def test_drop_of_a_truncate_sends_its_table_again(written: WrittenState) -> None:
    """Its writer has no row of it, and everybody else has all."""
    store = StateStore(written.root)
    written.append(TableName.QUARANTINE, quarantined_write(6, key=ALL_KEYS, reason="skew"))
    written.commit(1, 1, ruv(r1=1))

    assert drops(store, "1-6") == [(1, ("t", ALL_KEYS), 7, "skew")]


def test_accept_closes_a_conflict_without_a_change(store: StateStore) -> None:
    """The winner is in every replica already."""
    intake, effects = carried_out(store, Command(1, CommandName.ACCEPT, "3-0"))

    (row,) = effects.resolved.rows(2, ()).to_pylist()
    assert (row["id"], row["resolution"], row["resolved_by"]) == ("3-0", "accepted", None)
    assert own_changes(intake) == []


def test_override_makes_the_loser_a_change_of_the_hub(store: StateStore) -> None:
    """It goes the way of every change, with a CSN of the hub."""
    intake, effects = carried_out(store, Command(1, CommandName.OVERRIDE, "3-0", seen=4))

    (made,) = own_changes(intake)
    (row,) = effects.resolved.rows(2, ()).to_pylist()
    assert (made.table, made.key, made.after) == (LOSER.table, LOSER.key, LOSER.after)
    assert (row["resolution"], row["resolved_by"]) == ("overridden", made.csn)


def test_a_truncate_is_not_brought_back_by_an_override(written: WrittenState) -> None:
    """The hub writes rows, and none has the empty key: the conflict stays open."""
    truncate = CONFLICT | {"id": "3-1", "key": ALL_KEYS, "after": None, "op": "truncate"}
    written.append(TableName.CONFLICTS, truncate)

    intake, effects = carried_out(
        StateStore(written.root), Command(1, CommandName.OVERRIDE, "3-1", seen=4)
    )

    assert (own_changes(intake), effects.resolved.rows(2, ()).num_rows) == ([], 0)


@pytest.mark.parametrize(
    ("kind", "masked", "stays"),
    [
        pytest.param("transaction", {1: {"t"}}, True, id="written on masked rows"),
        pytest.param("transaction", {1: {"u"}}, False, id="another table"),
        pytest.param("transaction", {2: {"t"}}, False, id="another replica"),
        pytest.param("update_origin_change", {1: {"t"}}, False, id="lost by itself"),
    ],
)
def test_masks_are_not_brought_back_by_an_override(
    written: WrittenState, kind: str, masked: MaskedTables, *, stays: bool
) -> None:
    """They would become everybody's values: the conflict stays open."""
    written.append(TableName.CONFLICTS, CONFLICT | {"id": "3-1", "kind": kind, "loser_rid": 1})
    order = Command(1, CommandName.OVERRIDE, "3-1", seen=4)

    intake, effects = carried_out(StateStore(written.root), order, masked=masked)

    assert len(own_changes(intake)) == effects.resolved.rows(2, ()).num_rows == (not stays)


def test_all_commands_of_a_plan_are_carried_out(store: StateStore) -> None:
    """None hides another, also where two name the same id."""
    names = [CommandName.ACCEPT, CommandName.DROP, CommandName.LEVEL, CommandName.ABORT]
    arguments = ["3-0", "1-5", None, csn(10, 1)]
    commands = [Command(n, *one) for n, one in enumerate(zip(names, arguments, strict=True), 1)]

    intake, effects = carried_out(store, *commands)

    assert effects.nudged
    assert effects.released.rows.num_rows == effects.resolved.rows(2, ()).num_rows == 1
    assert len(intake.repairs) == 1


def test_what_is_not_there_any_more_is_left_alone(store: StateStore) -> None:
    """An earlier batch may have closed what an operator saw as open."""
    commands = [Command(1, CommandName.DROP, "1-6"), Command(2, CommandName.OVERRIDE, "3-1")]

    intake, effects = carried_out(store, *commands)

    assert effects.released.rows.num_rows == effects.resolved.rows(2, ()).num_rows == 0
    assert own_changes(intake) == []


def test_a_repair_refreshes_a_row_behind_what_was_read(store: StateStore) -> None:
    """What its replica wrote there and the hub has not read has not seen the refresh."""
    repair = RowRepair("t", '{"k":"k"}', 1, "ops", "a lost trigger")
    elsewhere = replace(repair, table="not configured")
    commands = [
        Command(n, CommandName.REPAIR, one.text()) for n, one in enumerate((repair, elsewhere))
    ]

    intake, _ = carried_out(store, *commands, offsets={"changes.a": 8})

    assert [(one.rid, one.row, one.offset, one.cause) for one in intake.repairs] == [
        (1, ("t", '{"k":"k"}'), 7, "compared")
    ]
    assert (intake.counts["repaired"], intake.counts["unknown_repairs"]) == (1, 1)


@pytest.mark.parametrize(("after", "op"), [('{"k":"k","v":"a"}', Op.UPDATE), (None, Op.DELETE)])
def test_a_row_that_is_preferred_becomes_a_change_of_the_hub(
    store: StateStore, after: str | None, op: Op
) -> None:
    """Judged by what the operator had seen; the changelog names him as its application."""
    order = RowRepair("t", '{"k":"k"}', 1, "ops", "a lost trigger", '{"k":"k"}', after)
    elsewhere = replace(order, table="not configured")
    commands = [
        Command(n, CommandName.PREFER, one.text(), seen=4)
        for n, one in enumerate((order, elsewhere))
    ]

    intake, _ = carried_out(store, *commands)

    (made,) = own_changes(intake)
    (arrived,) = [one for (one,) in intake.eligible if one.change is made]
    assert (made.key, made.op, made.after, made.app) == (order.key, op, after, "compare: ops")
    assert arrived.mre == 4
    assert intake.standing == {made.csn: order.rid}
    assert intake.counts["unknown_repairs"] == 1


def test_an_undo_of_what_is_not_there_any_more_writes_nothing(store: StateStore) -> None:
    """The past that it names may end between the order and its batch; the hub goes on."""
    order = UndoOrder("t", 99, "me", "too late")
    commands = [
        Command(n, CommandName.UNDO, one.text(), seen=4)
        for n, one in enumerate((order, replace(order, table="not configured")))
    ]

    intake, _ = carried_out(store, *commands)

    assert own_changes(intake) == []
    assert intake.counts["refused_undos"] == 2


def test_an_undo_looks_for_nothing_that_is_purged(store: StateStore) -> None:
    """What a batch finds of it depends on how far it is deleted."""
    looked = list[int]()
    commands = [
        Command(n, CommandName.UNDO, UndoOrder("t", to, "me", "why").text(), seen=9)
        for n, to in enumerate((4, 5))
    ]

    intake, _ = carried_out(
        store, *commands, purge_epoch=5, undone=lambda *asked: looked.append(asked[2].to)
    )

    assert looked == [5]
    assert intake.counts["refused_undos"] == 2


def test_a_batch_ends_with_an_undo(written: WrittenState, store: StateStore) -> None:
    """The next one reads in the tables what this one has written."""
    for number, name in enumerate((CommandName.LEVEL, CommandName.UNDO, CommandName.LEVEL), 1):
        row = {"number": number, "kind": "command", "command": name.value, "seen": 0}
        written.append(TableName.CONFIG, row)

    assert [one.number for one in next_commands(store, 0)] == [1, 2]
    assert [one.number for one in next_commands(store, 2)] == [3]
