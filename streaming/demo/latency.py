"""How long a change takes from its commit at the origin to its commit at another replica.

Both times are the agents' own: the journal records when a write was committed, and when the first
batch was applied whose RUV covers it.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import ceil

from streaming.core.conflict.judge import Verdict
from streaming.demo.evidence import Evidence, JournaledWrite, ReplicaEvidence, Row


def latencies_ms(evidence: Evidence) -> dict[tuple[str, str], list[int]]:
    """(origin, replica) -> per accepted change the time from commit there to commit here."""
    return {
        (origin.name, other.name): _latencies_ms(evidence.verdicts, origin, other)
        for origin in evidence.replicas
        for other in evidence.replicas
        if origin is not other
    }


def _latencies_ms(
    verdicts: dict[str, Row], origin: ReplicaEvidence, other: ReplicaEvidence
) -> list[int]:
    known = [applied.ruv.max_of(origin.rid) or "" for applied in other.applied]
    found = list[int]()
    for write in _accepted(verdicts, origin):
        place = bisect_left(known, write.change.csn)
        if place < len(known):
            found.append(other.applied[place].at_ms - write.at_ms)
    return found


def _accepted(verdicts: dict[str, Row], replica: ReplicaEvidence) -> list[JournaledWrite]:
    return [
        write
        for write in replica.writes
        if verdicts.get(write.change.csn, {}).get("verdict") == Verdict.ACCEPTED
    ]


def percentile(values: Sequence[int], percent: int) -> int | None:
    """The smallest value that this percentage of values does not exceed; None without values."""
    if not values:
        return None
    return sorted(values)[max(0, ceil(len(values) * percent / 100) - 1)]
