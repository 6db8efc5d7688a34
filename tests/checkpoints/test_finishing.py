"""A batch that two hubs died of is known."""

from dataclasses import replace
from pathlib import Path

from checkpoints.commit.epochs import Plan
from checkpoints.commit.finishing import FILE, was_begun

PLAN = Plan(7, 1_700_000_000_000, 1, {"t": 0}, {"t": 5})


def test_the_second_hub_that_finishes_a_plan_knows_of_the_first(tmp_path: Path) -> None:
    """A batch of the same number that was planned anew is another one."""
    again = replace(PLAN, at_ms=PLAN.at_ms + 1)

    assert [was_begun(tmp_path, one) for one in (PLAN, PLAN, again, again, PLAN)] == [
        *(False, True, False, True, False),
    ]


def test_a_damaged_note_is_none(tmp_path: Path) -> None:
    """The batch is read as ever then, and noted."""
    (tmp_path / FILE).write_text("{")

    assert [was_begun(tmp_path, PLAN), was_begun(tmp_path, PLAN)] == [False, True]
