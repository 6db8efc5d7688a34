"""How long a change takes from its commit at the origin to its commit at another replica, by part.

The journals record when a write was committed, and when the first batch was applied whose RUV
covers it; Kafka records when the agent and the hub published in between.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from streaming.core.conflict.judge import Verdict
from streaming.demo.databases.replica_evidence import JournaledWrite, ReplicaEvidence
from streaming.demo.verdict.evidence import Evidence


@dataclass(frozen=True, slots=True)
class ChangeLatency:
    """The way of one accepted change to one other replica, in milliseconds.

    `agent_ms`: from the commit at the origin into the origin's topic. `hub_ms`: from there into the
    other replica's topic. `apply_ms`: from there to the commit at the other replica.
    """

    origin: str
    replica: str
    agent_ms: int
    hub_ms: int
    apply_ms: int

    @property
    def total_ms(self) -> int:
        """From commit to commit."""
        return self.agent_ms + self.hub_ms + self.apply_ms


def latencies(evidence: Evidence) -> list[ChangeLatency]:
    """Every accepted change that was written since the clock ran, at each other replica.

    One that was away is left out: restored from a backup, or lacking changes when another one died.
    """
    away = set(evidence.retirement.lacking) if evidence.retirement else set[str]()
    return [
        latency
        for origin in evidence.replicas
        for other in evidence.replicas
        if origin is not other and other.past is None and not away & {origin.name, other.name}
        for latency in _latencies(evidence, origin, other)
    ]


def _latencies(
    evidence: Evidence, origin: ReplicaEvidence, other: ReplicaEvidence
) -> Iterator[ChangeLatency]:
    known = [applied.ruv.max_of(origin.rid) or "" for applied in other.applied]
    published_ms = evidence.timing.published_ms.get(other.name, {})
    for write, appended_ms in _accepted(evidence, origin):
        place = bisect_left(known, write.change.csn)
        applied = other.applied[place] if place < len(known) else None
        if applied is not None and applied.hub_epoch in published_ms:
            sent_ms = published_ms[applied.hub_epoch]
            parts = (appended_ms - write.at_ms, sent_ms - appended_ms, applied.at_ms - sent_ms)
            yield ChangeLatency(origin.name, other.name, *parts)


def _accepted(evidence: Evidence, replica: ReplicaEvidence) -> Iterator[tuple[JournaledWrite, int]]:
    """The replica's timed writes that were accepted, each with its record's time in Kafka."""
    for write in replica.writes:
        row = evidence.verdicts.get(write.change.csn)
        is_timed = write.at_ms >= evidence.timing.measured_since_ms
        if is_timed and row is not None and row["verdict"] == Verdict.ACCEPTED:
            yield write, round(row["time"].timestamp() * 1000)


def percentile(values: Sequence[int], percent: int) -> int | None:
    """The smallest value that this percentage of values does not exceed; None without values."""
    if not values:
        return None
    return sorted(values)[max(0, ceil(len(values) * percent / 100) - 1)]
