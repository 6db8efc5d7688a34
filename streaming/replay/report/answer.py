"""What a replay answers: how much was judged again, and what came out otherwise."""

import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from checkpoints.commit.recorded import BatchMark, Read, batch_marks, judged_in
from checkpoints.reading.past import PastStore, oldest_epoch
from streaming.core.replay.compare import Difference, RecordedPart
from streaming.core.replay.span import Moment, Span, span_of
from streaming.core.replay.undo import UnaskedUndo
from streaming.replay.configured import ConfigsThen
from streaming.replay.report.effects import (
    RowEffect,
    VerdictEffect,
    is_other,
    row_effects,
    verdict_effects,
)
from streaming.replay.report.tally import Tally
from streaming.replay.run import ReplayedBatch, replay_from
from streaming.replay.what_if import NO_CHANGE, WhatIf

KEPT = 10_000
"""How many differences, changed verdicts and differing rows are kept one by one."""

HELD = (
    "writes and reflections are held as they are recorded: replicas that had been answered"
    " otherwise would have written and seen other things"
)
"""What a what-if cannot know."""


class PlacedDifference(NamedTuple):
    """A difference, and the batch and hub epoch in which it is recorded."""

    batch: int
    hub_epoch: int
    difference: Difference


@dataclass(slots=True)
class ReplayAnswer:
    """The answer to a replay of a span; `what_if`: what was set otherwise.

    `differences`: the first of them; `count`: of all, by part and fact. `verdicts`, `rows`: of a
    what-if, the changes whose verdict is another, and the rows that would stand otherwise.
    `unasked`: the undos whose rows are judged as they are recorded.
    """

    span: Span
    first_ms: int
    last_ms: int
    what_if: WhatIf
    batches: int = 0
    seconds: float = 0.0
    tally: Tally = field(default_factory=Tally)
    count: Counter[tuple[RecordedPart, str]] = field(default_factory=Counter)
    differences: list[PlacedDifference] = field(default_factory=list)
    verdict_count: int = 0
    verdicts: list[VerdictEffect] = field(default_factory=list)
    row_count: int = 0
    rows: list[RowEffect] = field(default_factory=list)
    unasked: list[UnaskedUndo] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """Return whether every fact came out as it is recorded."""
        return not self.count

    def add(self, one: ReplayedBatch) -> None:
        """Add a batch."""
        recorded, replayed = one.logs
        self.batches += 1
        self.tally.add(one.after.at_ms, recorded, replayed)
        self.count.update((d.part, d.fact) for d in one.differences)
        self.unasked += one.unasked
        room = KEPT - len(self.differences)
        place = one.recorded.batch, one.after.state.hub_epoch
        self.differences += (PlacedDifference(*place, d) for d in one.differences[:room])
        if self.what_if.is_something:
            found = verdict_effects(one)
            self.verdict_count += len(found)
            self.verdicts += found[: KEPT - len(self.verdicts)]

    def document(self) -> dict[str, Any]:
        """The answer as one JSON document."""
        recorded, replayed = self.tally.totals()
        common = {
            "from_epoch": self.span.from_epoch,
            "to_epoch": self.span.to_epoch,
            "batches": self.batches,
            "changes": recorded.judged,
            "refreshes": self.tally.refreshes,
            "in_conflict": recorded.in_conflict,
            "not_asked": [undo.document() for undo in self.unasked],
            "seconds": round(self.seconds, 3),
        }
        if not self.what_if.is_something:
            return {
                **common,
                "equal": self.is_equal,
                "differing_facts": self.count.total(),
                "differences": [_document_of(one) for one in self.differences],
            }
        return {
            **common,
            "set": self.what_if.texts(),
            "held": HELD,
            "in_conflict_then": replayed.in_conflict,
            "groups": [_group(self.tally, group) for group in self.tally.groups()],
            "changed_verdicts": self.verdict_count,
            "verdicts": [one._asdict() for one in self.verdicts],
            "differing_rows": self.row_count,
            "rows": [one.document() for one in self.rows],
        }


def _document_of(one: PlacedDifference) -> dict[str, Any]:
    fields = one.difference._asdict() | {"part": one.difference.part.value}
    return {
        "batch": one.batch,
        "hub_epoch": one.hub_epoch,
        **{k: _plain(v) for k, v in fields.items()},
    }


def _plain(value: object) -> object:
    is_plain = value is None or isinstance(value, str | int | float | bool)
    return value if is_plain else str(value)


def _group(tally: Tally, group: tuple[str, str | None]) -> dict[str, Any]:
    mine, theirs = tally.recorded[group], tally.replayed[group]
    return {
        "table": group[0],
        "app": group[1],
        "changes": mine.judged,
        "in_conflict": mine.in_conflict,
        "in_conflict_then": theirs.in_conflict,
        "rejected": mine.rejected,
        "rejected_then": theirs.rejected,
    }


class Chosen(NamedTuple):
    """A part of the history: the span, and its batches."""

    span: Span
    marks: list[BatchMark]


def choose(store: PastStore, begin: Moment | None, end: Moment | None) -> Chosen:
    """The hub epochs from one moment to another; QuestionError if there are none, or gone."""
    marks = batch_marks(store)
    oldest = oldest_epoch(store, marks)
    span = span_of(marks, begin, end, lambda csn: judged_in(store, csn), oldest)
    return Chosen(span, [mark for mark in marks if span.first <= mark.batch <= span.last])


def replay(
    store: PastStore, chosen: Chosen, read: Read, what_if: WhatIf = NO_CHANGE
) -> ReplayAnswer:
    """Judge a part of the history again, and compare."""
    started_s, marks = time.monotonic(), chosen.marks
    answer = ReplayAnswer(chosen.span, marks[0].at_ms, marks[-1].at_ms, what_if)
    run = replay_from(store, ConfigsThen(store, what_if), chosen.span)
    for one in run.batches(read, marks):
        answer.add(one)
    if what_if.is_something:
        differing = run.hub.differing
        answer.row_count = sum(is_other(pair) for pair in differing.values())
        answer.rows = list(islice(row_effects(differing, store), KEPT))
    answer.seconds = time.monotonic() - started_s
    return answer
