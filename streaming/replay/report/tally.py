"""Counts over the batches of a replay: per table and application, and along time."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.conflict.judge import Verdict
from streaming.stages.log import CHANGE

BUCKETS = 60
"""Into how many parts a history is cut along time, at most."""

WriterGroup = tuple[str, str | None]
"""(table, application that wrote the change, None: not stated)."""


@dataclass(slots=True)
class VerdictCounts:
    """How many changes were judged, were in conflict, were rejected, as one side has it."""

    judged: int = 0
    in_conflict: int = 0
    rejected: int = 0

    def add(self, other: "VerdictCounts") -> None:
        """Add the counts of other changes."""
        self.judged += other.judged
        self.in_conflict += other.in_conflict
        self.rejected += other.rejected


class Bucket(NamedTuple):
    """A part of the time: when it begins, and what was in conflict as recorded and as replayed."""

    at_ms: int
    judged: int
    recorded: int
    replayed: int


@dataclass(slots=True)
class Tally:
    """The counts of both sides; `times`: the hub's clock -> judged, in conflict on both sides."""

    recorded: dict[WriterGroup, VerdictCounts] = field(
        default_factory=lambda: defaultdict(VerdictCounts)
    )
    replayed: dict[WriterGroup, VerdictCounts] = field(
        default_factory=lambda: defaultdict(VerdictCounts)
    )
    times: list[Bucket] = field(default_factory=list)
    refreshes: int = 0

    def add(self, at_ms: int, recorded: pa.Table, replayed: pa.Table) -> None:
        """Add the changelogs of a batch."""
        mine, theirs = _by_writer(recorded), _by_writer(replayed)
        for group, counts in mine.items():
            self.recorded[group].add(counts)
        for group, counts in theirs.items():
            self.replayed[group].add(counts)
        here, there = _sum(mine), _sum(theirs)
        self.refreshes += recorded.num_rows - here.judged
        if there.judged or here.in_conflict or there.in_conflict:
            self.times.append(Bucket(at_ms, there.judged, here.in_conflict, there.in_conflict))

    def groups(self) -> list[WriterGroup]:
        """All groups of writers, by name."""
        return sorted({*self.recorded, *self.replayed}, key=lambda one: (one[0], one[1] or ""))

    def totals(self) -> tuple[VerdictCounts, VerdictCounts]:
        """The counts of all groups: as recorded, as replayed."""
        return _sum(self.recorded), _sum(self.replayed)

    def buckets(self) -> list[Bucket]:
        """The time in at most BUCKETS parts of one length."""
        if not self.times:
            return []
        first, last = self.times[0].at_ms, self.times[-1].at_ms
        length = (last - first) // BUCKETS + 1
        found = dict[int, Counter[str]]()
        for one in self.times:
            counts = found.setdefault((one.at_ms - first) // length, Counter())
            counts.update(judged=one.judged, recorded=one.recorded, replayed=one.replayed)
        return [
            Bucket(first + n * length, c["judged"], c["recorded"], c["replayed"])
            for n, c in sorted(found.items())
        ]


def _by_writer(log: pa.Table) -> dict[WriterGroup, VerdictCounts]:
    changes = log.filter(pc.equal(log["kind"], CHANGE))
    if not changes.num_rows:
        return {}
    marks = {
        "in_conflict": pc.is_valid(changes["cause"]),
        "rejected": pc.equal(changes["verdict"], Verdict.REJECTED.value),
    }
    rows = changes.select(["table", "app"])
    for name, mark in marks.items():
        rows = rows.append_column(name, mark.cast(pa.int64()))
    counted = rows.group_by(["table", "app"]).aggregate(
        [([], "count_all"), ("in_conflict", "sum"), ("rejected", "sum")]
    )
    return {
        (row["table"], row["app"]): VerdictCounts(
            row["count_all"], row["in_conflict_sum"], row["rejected_sum"]
        )
        for row in counted.to_pylist()
    }


def _sum(groups: Mapping[WriterGroup, VerdictCounts]) -> VerdictCounts:
    total = VerdictCounts()
    for counts in groups.values():
        total.add(counts)
    return total
