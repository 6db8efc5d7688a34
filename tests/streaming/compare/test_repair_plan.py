"""Which order to the hub sets a row right, by who is right and what the hub has."""

from dataclasses import replace

import pytest

from streaming.compare.repair import LeftOut, RepairPlanner, RepairSide
from streaming.core.compare.difference import DifferingRow, differing_columns
from streaming.core.compare.row_text import Image
from streaming.core.model.command import CommandName, parse_row_repair
from streaming.core.model.table import ColumnType, Table

T = Table("t", ("k",), {"k": ColumnType.INT64, "v": ColumnType.DECIMAL, "w": ColumnType.TEXT})
KEY = '{"k":"1"}'
NAMES = frozenset({"t"})
HUB = RepairSide("hub", None, is_hub=True)
A = RepairSide("a", 1, receives=NAMES, writes=NAMES)
B = RepairSide("b", 2, receives=NAMES, writes=NAMES)
STRANGER = RepairSide("/tmp/copy.db", None)


def image(value: str) -> Image:
    """The row with this value."""
    return {"k": "1", "v": value, "w": "same"}


def row(first: Image | None, second: Image | None) -> DifferingRow:
    """The row as it differs."""
    return DifferingRow("t", KEY, first, second, differing_columns(T, first, second))


def planner(source: RepairSide, other: RepairSide, at_hub: Image | None) -> RepairPlanner:
    """A planner whose source is the first side."""
    hub = {} if at_hub is None else {("t", KEY): at_hub}
    return RepairPlanner({"t": T}, source, other, True, hub, "ops", "a lost trigger")  # noqa: FBT003


ONE, OTHER = image("1.50"), image("2")


@pytest.mark.parametrize(
    ("source", "other", "first", "second", "at_hub", "command", "rid"),
    [
        (HUB, A, ONE, OTHER, ONE, CommandName.REPAIR, 1),
        (HUB, A, None, OTHER, None, CommandName.REPAIR, 1),
        (A, B, ONE, OTHER, image("1.5"), CommandName.REPAIR, 2),
        (A, B, None, OTHER, None, CommandName.REPAIR, 2),
        (A, HUB, ONE, OTHER, OTHER, CommandName.PREFER, 1),
        (A, B, ONE, OTHER, OTHER, CommandName.PREFER, 1),
        (A, B, ONE, OTHER, None, CommandName.PREFER, 1),
        (A, B, ONE, OTHER, {"k": "1"}, CommandName.PREFER, 1),
        (A, B, None, OTHER, OTHER, CommandName.PREFER, 1),
        (A, STRANGER, ONE, OTHER, OTHER, CommandName.PREFER, 1),
    ],
)
def test_a_row_is_refreshed_if_the_hub_has_it_right(
    source: RepairSide,
    other: RepairSide,
    first: Image | None,
    second: Image | None,
    at_hub: Image | None,
    command: CommandName,
    rid: int,
) -> None:
    """Else the hub must change; a value in another spelling is right, an unknown column is not."""
    found = planner(source, other, at_hub).plan([row(first, second)])

    (step,) = found.steps
    assert (step.command, step.repair.rid, found.left_out) == (command, rid, ())
    assert parse_row_repair(step.repair.text()) == step.repair
    assert (step.repair.who, step.repair.why) == ("ops", "a lost trigger")
    if command is CommandName.PREFER:
        after = None if first is None else '{"k":"1","v":"1.50","w":"same"}'
        assert step.repair.after == after
        assert ("deleted for everybody" in step.text) is (first is None)


FAULTY: Image = {"k": "1", "v": {"text": "abc"}, "w": "same"}


@pytest.mark.parametrize(
    ("source", "other", "first", "at_hub", "why"),
    [
        (HUB, STRANGER, ONE, ONE, LeftOut.NO_REPLICA),
        (STRANGER, A, ONE, OTHER, LeftOut.NO_REPLICA),
        (HUB, replace(A, receives=frozenset()), ONE, ONE, LeftOut.NO_AGREEMENT),
        (replace(A, writes=frozenset()), HUB, ONE, OTHER, LeftOut.NO_RIGHT),
        (A, HUB, FAULTY, OTHER, LeftOut.NOT_CARRIED),
    ],
)
def test_what_cannot_be_set_right_is_left_out(
    source: RepairSide, other: RepairSide, first: Image, at_hub: Image, why: LeftOut
) -> None:
    """Nobody is told that it is done."""
    found = planner(source, other, at_hub).plan([row(first, OTHER)])

    assert (found.steps, [one for _, one in found.left_out]) == ((), [why])


def test_a_key_that_no_record_can_have_is_left_out() -> None:
    """The hub has no such row, and can send no delete of it."""
    stray = DifferingRow("t", '{"k":{"text":"abc"}}', None, FAULTY)

    found = planner(HUB, A, None).plan([stray])

    assert [why for _, why in found.left_out] == [LeftOut.NOT_CARRIED]
