"""An operator's commands: each has its own effect, and one batch carries out all of its plan."""

from collections.abc import Mapping
from pathlib import Path
from typing import Never

import pyarrow as pa
import pytest

from checkpoints.epochs import Plan
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.intake.transactions import Intake
from streaming.core.model.change import Change
from streaming.core.model.command import Command, CommandName
from streaming.core.model.row import ALL_OFFSETS
from streaming.operator.dispatch import CommandEffects, carry_out
from tests.checkpoints.written_state import WrittenState
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
def store(tmp_path: Path) -> StateStore:
    """A state with one record in quarantine and one open conflict."""
    written = WrittenState(tmp_path / "state").create()
    written.append(TableName.QUARANTINE, QUARANTINED)
    written.append(TableName.CONFLICTS, CONFLICT)
    return StateStore(written.root)


def carried_out(
    store: StateStore, *commands: Command, offsets: Mapping[str, int] | None = None
) -> tuple[Intake, CommandEffects]:
    """A batch's intake behind these commands, and their other effects."""
    intake = intake_of_session(change(10, tx=10), change(12))
    plan = Plan(2, 2_000_000, 1, offsets or {}, {}, commands)
    return intake, carry_out(plan, intake, store, _unused, hub_rid=HUB, topics={"changes.a": 1})


def _unused(_: pa.Table) -> Never:
    raise AssertionError("only a release parses records again")


def own_changes(intake: Intake) -> list[Change]:
    """The changes that the hub made itself."""
    return [one.change for (one,) in intake.eligible if one.change.rid == HUB]


def test_without_commands_nothing_happens(store: StateStore) -> None:
    """Nearly every batch has none."""
    intake, effects = carried_out(store)

    assert (effects.released.num_rows, effects.nudged) == (0, False)
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

    rows = effects.released.select(["batch", "id", "action", "value"]).to_pylist()
    assert rows == [{"batch": 2, "id": "1-5", "action": "dropped", "value": None}]


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


def test_all_commands_of_a_plan_are_carried_out(store: StateStore) -> None:
    """None hides another, also where two name the same id."""
    names = [CommandName.ACCEPT, CommandName.DROP, CommandName.LEVEL, CommandName.ABORT]
    arguments = ["3-0", "1-5", None, csn(10, 1)]
    commands = [Command(n, *one) for n, one in enumerate(zip(names, arguments, strict=True), 1)]

    intake, effects = carried_out(store, *commands)

    assert effects.nudged
    assert effects.released.num_rows == effects.resolved.rows(2, ()).num_rows == 1
    assert len(intake.repairs) == 1


def test_what_is_not_there_any_more_is_left_alone(store: StateStore) -> None:
    """An earlier batch may have closed what an operator saw as open."""
    commands = [Command(1, CommandName.DROP, "1-6"), Command(2, CommandName.OVERRIDE, "3-1")]

    intake, effects = carried_out(store, *commands)

    assert effects.released.num_rows == effects.resolved.rows(2, ()).num_rows == 0
    assert own_changes(intake) == []
