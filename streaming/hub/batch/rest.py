"""A hub at rest: heartbeats that say nothing new are held, and need no batch of their own.

Nothing of them is written, so a hub that dies reads them again; the next batch takes them with what
came behind them. Meanwhile readers find what they say in the last poll
(checkpoints/commit/last_poll.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from checkpoints.commit.epochs import Plan
from checkpoints.commit.last_poll import READ_NOTHING, ReadAtRest
from streaming.carriers.carrier import Carrier
from streaming.core.records.record import RecordKind
from streaming.stages.checked import NO_CHECKED

HELD_MS = 60_000
"""How long heartbeats are held. So a hub that starts reads a minute of them again at most, and the
position in the tables stays far from where the topic's retention deletes."""


@dataclass(frozen=True, slots=True)
class HeldHeartbeats:
    """Heartbeats behind the last commit; `facts`: CHECKED. `since_ms`: when the first was read."""

    since_ms: int
    facts: pa.Table
    at_rest: ReadAtRest

    def is_due(self, at_ms: int) -> bool:
        """Return whether they were held for long enough, or the clock went back meanwhile."""
        return bool(self.at_rest.offsets) and not 0 <= at_ms - self.since_ms < HELD_MS

    def is_in(self, plan: Plan) -> bool:
        """Return whether the plan takes all of them, of topics that are still the same."""
        ends = self.at_rest.offsets.items()
        return not ends or (not plan.lost and all(plan.offsets_to[t] >= end for t, end in ends))

    def read(self, plan: Plan, read: Callable[[Plan], Carrier]) -> Carrier:
        """The records of a plan; only what stands behind the held ones is read, where it may be."""
        if not self.at_rest.offsets or not self.is_in(plan):
            return read(plan)
        new = read(self.beyond(plan))
        new.facts = pa.concat_tables([self.facts, new.facts])
        return new

    def beyond(self, plan: Plan) -> Plan:
        """The plan of what stands behind them."""
        ends = self.at_rest.offsets.items()
        first = {topic: max(end, plan.offsets_from[topic]) for topic, end in ends}
        return replace(plan, offsets_from={**plan.offsets_from, **first})


NOTHING_HELD = HeldHeartbeats(0, NO_CHECKED, READ_NOTHING)
"""The last commit is of all that was read."""


def are_heartbeats(facts: pa.Table) -> bool:
    """Return whether these records, as CHECKED, are valid heartbeats and nothing else."""
    is_heartbeat = pc.equal(facts["kind"], RecordKind.HEARTBEAT.value)
    is_valid = pc.and_(pc.is_null(facts["reason"]), pc.fill_null(is_heartbeat, fill_value=False))
    return pc.all(is_valid).as_py() is True


def read_once(read: Callable[[Plan], Carrier]) -> Callable[[Plan], Carrier]:
    """The same; records that were looked at before their batch was planned are not read again."""
    found: list[tuple[Plan, Carrier]] = []

    def once(plan: Plan) -> Carrier:
        if not found or found[0][0] != plan:
            found[:] = [(plan, read(plan))]
        return found[0][1]

    return once
