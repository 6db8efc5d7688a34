"""What a hub at work says of itself: its status, what no commit row holds, and each epoch."""

import math
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from checkpoints.commit.epochs import Checkpoint
from checkpoints.maintenance.files import StateFiles
from checkpoints.query import records
from checkpoints.times import time_of
from streaming.core.counts.counter_keys import of_hub
from streaming.facts.consumers.divergent import DivergenceKind
from streaming.facts.readiness import Readiness
from streaming.facts.status.hub import HubStatus

DRAIN_WINDOW_S = 60.0
"""A backlog's rate is that of so many seconds."""
CONFLICTS_MAX = 20
"""How many conflicts of a hub epoch are told in full; all of them are counted."""
IMAGE_MAX = 10_000
"""A longer row image is left out."""

_IMAGES = ("before", "after", "winner_image")


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """A hub at work at one moment.

    `files`, `polled_s` None: not known yet. `polled_s`: when it last reached Kafka, since 1970.
    `topics`: replica -> its changes topic. `functions`: table -> the rule of its function.
    `purge_horizon`: the hub epoch that all have. `time_to_level_s`: agreement -> in how long its
    consumer has everything at its present rate, math.inf: never. `certificates`: option -> when the
    file's first certificate expires, since 1970.
    """

    status: HubStatus
    readiness: Readiness
    checkpoint: Checkpoint
    topics: Mapping[str, str]
    functions: Mapping[str, str]
    slow_batches: int
    window_rows: int
    rows_epoch: int
    hubs_seen: int
    polled_s: float | None
    files: StateFiles | None
    purge_horizon: int
    time_to_level_s: Mapping[str, float]
    certificates: Mapping[str, float]


@dataclass(slots=True)
class BacklogDrain:
    """How fast a backlog shrinks, by what it was in the last minute."""

    seen: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, at_s: float, changes: int) -> None:
        """Note the backlog at a time."""
        self.seen.append((at_s, changes))
        while self.seen[0][0] < at_s - DRAIN_WINDOW_S:
            self.seen.popleft()

    def time_to_level_s(self, now_s: float, changes: int) -> float:
        """In how long a backlog is gone at this rate; math.inf: it does not shrink."""
        if not changes:
            return 0.0
        began = next((one for one in list(self.seen) if one[0] >= now_s - DRAIN_WINDOW_S), None)
        if began is None or began[0] >= now_s or began[1] <= changes:
            return math.inf
        per_s = (began[1] - changes) / (now_s - began[0])
        return changes / per_s


def epoch_event(checkpoint: Checkpoint, conflicts: pa.Table) -> dict[str, Any]:
    """What a hub epoch brought: counts, and its first conflicts with both sides.

    A conflict has the fields of `slackwater conflicts list --json`; `omitted` names the images that
    are too long.
    """
    return {
        "hub_epoch": checkpoint.state.hub_epoch,
        "batch": checkpoint.state.batch,
        "at": time_of(checkpoint.at_ms),
        "counts": of_hub(checkpoint.counts),
        "conflicts": {
            "count": conflicts.num_rows,
            "first": [conflict_document(row) for row in records(conflicts.slice(0, CONFLICTS_MAX))],
        },
    }


def state_event(found: LiveFacts) -> dict[str, Any]:
    """How the hub, its agreements and its replicas stand now."""
    status = found.status
    agreements = (
        asdict(one) | {"time_to_level_s": _finite(found.time_to_level_s.get(one.name))}
        for one in status.agreements
    )
    return {
        "hub": status.hub,
        "hub_epoch": status.hub_epoch,
        "batch": status.batch,
        "readiness": asdict(found.readiness),
        "agreements": list(agreements),
        "replicas": [asdict(one) for one in status.replicas],
        "unheard": [one.text for one in status.unheard],
        "unread": status.unread,
        "pending": asdict(status.pending),
        "quarantine": asdict(status.quarantine),
        "uncarried": Counter(
            one.replica for one in status.differing if one.kind is DivergenceKind.UNCARRIED
        ),
        "conflicts": {"total": status.conflicts.total, "by_kind": status.conflicts.by_kind},
        "totals": status.totals,
    }


def conflict_document(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `conflicts`; `omitted` names the images that are too long and left out."""
    long = [name for name in _IMAGES if len(row[name] or "") > IMAGE_MAX]
    return {**row, **dict.fromkeys(long), "omitted": long}


def _finite(seconds: float | None) -> float | None:
    """JSON has no infinity: None also where it never comes."""
    return seconds if seconds is not None and seconds < float("inf") else None
