"""`compare --repair`: what would set the rows right that differ, and with --yes the orders."""

import getpass
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from checkpoints.reading.reader import Reader
from streaming.compare.repair import RepairPlan, RepairPlanner, RepairStep
from streaming.compare.report import ReplicaComparison
from streaming.compare.sides import ComparedSide, repair_side
from streaming.config.config import Config
from streaming.core.compare.difference import DifferingRow
from streaming.core.model.command import CommandName
from streaming.core.model.errors import QuestionError
from streaming.core.text.wording import as_count, as_numbered
from streaming.facts.names import committed
from streaming.terminal.output import write_line, write_sentence, write_table


@dataclass(frozen=True, slots=True)
class RepairOrder:
    """Who orders it and why; `is_given`: it is not only asked what would be done."""

    who: str
    why: str
    is_given: bool


@dataclass(frozen=True, slots=True)
class RepairChoice:
    """The sides, which of them is right, and the keys that are chosen; none: every row."""

    sides: tuple[ComparedSide, ComparedSide]
    is_first: bool
    keys: tuple[str, ...]
    order: RepairOrder


@dataclass(frozen=True, slots=True)
class RowRepairs:
    """What was planned by a hub epoch, and the numbers of the commands, if they were appended."""

    plan: RepairPlan
    seen: int
    numbers: tuple[int, ...] = ()

    @property
    def is_ordered(self) -> bool:
        """Return whether everything that was chosen is ordered."""
        return bool(self.numbers) and not self.plan.left_out

    def texts(self, command: CommandName) -> list[str]:
        """The arguments of the commands of this name."""
        return [one.repair.text() for one in self.plan.steps if one.command is command]

    def document(self) -> dict[str, Any]:
        """The repair as JSON."""
        steps = [
            {
                "command": one.command,
                "replica": one.replica,
                "row": [one.repair.table, one.repair.key],
            }
            for one in self.plan.steps
        ]
        left_out = [
            {"row": [row.table, row.key], "why": why.value} for row, why in self.plan.left_out
        ]
        return {"repair": {"steps": steps, "left_out": left_out, "numbers": list(self.numbers)}}


def user_name() -> str:
    """Who runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def repair_choice(
    sides: tuple[ComparedSide, ComparedSide],
    named: tuple[str, str],
    source: str | None,
    tables: Sequence[str],
    keys: Sequence[str],
    *,
    is_all: bool,
    order: RepairOrder,
) -> RepairChoice:
    """What is to be repaired; QuestionError: something is missing, or contradicts itself."""
    names = [{text, side.name} for text, side in zip(named, sides, strict=True)]
    which = [place for place, known in enumerate(names) if source in known]
    if len(which) != 1:
        raise QuestionError(
            f"--repair needs --source {named[0]} or --source {named[1]}: say who is right"
        )
    if not (is_all or tables):
        raise QuestionError(
            "say what --repair is to set right: --table, --table and --key, or --all"
        )
    if keys and len(tables) != 1:
        raise QuestionError("--key needs one --table: a key is of a table")
    if order.is_given and not order.why:
        raise QuestionError("--yes needs --why: the reason is recorded with the repair")
    return RepairChoice(sides, which[0] == 0, tuple(keys), order)


def planned_repairs(
    config: Config, reader: Reader, found: ReplicaComparison, choice: RepairChoice
) -> RowRepairs:
    """Plan the repair of the rows that differ; StateError: no hub has committed anything.

    The hub's rows are read behind the hub epoch by which the changes are judged.
    """
    from streaming.compare import hub_rows  # noqa: PLC0415  # it imports Spark

    seen = committed(reader).hub_epoch
    rows = _chosen(found, choice)
    hub = {
        (one.table.name, key): image
        for one in found.tables
        for key, image in hub_rows.images_of(
            config, one.table, [row.key for row in rows if row.table == one.table.name]
        ).items()
    }
    first, second = (repair_side(config, side) for side in choice.sides)
    source, other = (first, second) if choice.is_first else (second, first)
    order = choice.order
    planner = RepairPlanner(
        config.table_map(), source, other, choice.is_first, hub, order.who, order.why
    )
    return RowRepairs(planner.plan(rows), seen)


def _chosen(found: ReplicaComparison, choice: RepairChoice) -> list[DifferingRow]:
    if not choice.keys:
        return found.rows
    from streaming.facts.history.past_rows import key_named  # noqa: PLC0415  # it imports Spark

    (table,) = [one.table for one in found.tables]
    keys = {key_named(table, key) for key in choice.keys}
    rows = [row for row in found.rows if row.key in keys]
    if missing := keys - {row.key for row in rows}:
        raise QuestionError(f"row {table.name} {min(missing)} does not differ")
    return rows


def show_repair(repaired: RowRepairs, limit: int) -> None:
    """Print what is done, or would be."""
    steps, left_out = repaired.plan.steps, repaired.plan.left_out
    if steps:
        write_line()
        write_table(("row", "repair"), map(_line, steps[:limit]))
    for row, why in left_out[:limit]:
        write_sentence(f"left out: {row.table} {row.key}: {why}")
    rows = as_count(len(steps), "row")
    if repaired.numbers:
        write_sentence(
            f"{rows} ordered: {as_numbered('command', repaired.numbers[0], repaired.numbers[-1])};"
            " a running hub executes them with its next batches"
        )
    elif steps:
        write_sentence(f"{rows} would be set right. Nothing is done yet: add --yes and --why TEXT")


def _line(step: RepairStep) -> tuple[str, str]:
    return f"{step.repair.table} {step.repair.key}", step.text
