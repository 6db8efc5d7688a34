"""What a hub at work says of itself: its status, and what no commit row holds."""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from checkpoints.commit.epochs import Checkpoint
from checkpoints.maintenance.files import StateFiles
from streaming.facts.readiness import Readiness
from streaming.facts.status.hub import HubStatus

DRAIN_WINDOW_S = 60.0
"""A backlog's rate is that of so many seconds."""


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
