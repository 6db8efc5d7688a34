"""Fair shares: how many of the records that wait a batch takes of each replica.

A batch is bounded by time, by what the records of each replica cost lately. What a replica does not
need of its share the others get (max-min fairness), so whoever writes little is never cut.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from statistics import median

LEAST_RECORDS = 100
"""A batch takes so many records of each replica, whatever they cost: every replica goes on."""

FIRST_RECORDS = 250
"""A replica that begins to flood gets so many records of a short batch."""
_GROWTH = 4
"""It gets so many times more with each further one, or less: not more than would take as much
longer again as the last one took."""

FIRST_COST_S = 50e-6
"""What a record is taken to cost until a batch has shown it; a plain change costs a quarter."""
_CHEAPEST_S = 1e-6
"""Below this a record's cost cannot be measured."""

USUAL_BATCHES = 21
"""So many batches that took little tell how long a batch usually takes."""
_FIRST_USUAL_S = 0.25

LEVEL = 10
"""A replica of which ten times less waits than of another one is not behind as that one is."""

WROTE_MS = 10_000
"""A replica that wrote a change so lately is likely to write again, and then waits for the batch in
progress."""


@dataclass(frozen=True, slots=True)
class BatchBounds:
    """How much a batch takes at most.

    `records`: of all replicas. `whole_s`: how long a batch may take. `shared_s`: how long the
    records may take of replicas that have more than that, while others write; it is never longer
    than a batch usually takes.
    """

    records: int
    whole_s: float
    shared_s: float


@dataclass(frozen=True, slots=True)
class BatchCosts:
    """What batches cost lately.

    `recent_s`: how long those took that took little. `record_s`: rid -> seconds for each record.
    `most`: rid -> how many records the next short batch takes, if not FIRST_RECORDS.
    """

    recent_s: tuple[float, ...] = (_FIRST_USUAL_S,)
    record_s: Mapping[int, float] = field(default_factory=dict)
    most: Mapping[int, int] = field(default_factory=dict)

    @property
    def usual_s(self) -> float:
        """How long a batch takes that nobody floods."""
        return median(self.recent_s)

    def of(self, rid: int) -> float:
        """Seconds for a record of a replica."""
        return self.record_s.get(rid, FIRST_COST_S)

    def most_of(self, rid: int) -> int:
        """The records of a replica that the next short batch takes at most."""
        return self.most.get(rid, FIRST_RECORDS)

    def after(self, taken: Mapping[int, int], seconds: float) -> "BatchCosts":
        """The costs after a batch that took so many records of each replica, and so long.

        What it took longer than usual is put down to the replicas by what their records were
        expected to take. Batches differ by as much as they take, so one that was expected to take
        little says nothing of its records unless a replica was cut, and one below twice the usual
        time makes none dearer, nor does one of the fewest records. None makes a record cheaper than
        half.
        """
        expected = {rid: count * self.of(rid) for rid, count in taken.items() if count}
        in_all_s, usual_s, recent_s = sum(expected.values()), self.usual_s, self.recent_s
        is_least = all(count <= LEAST_RECORDS for count in taken.values())
        cut = {rid for rid, count in taken.items() if count >= self.most_of(rid)}
        is_little = in_all_s <= usual_s / 4 and not cut
        growth = min(_GROWTH, usual_s / max(seconds - usual_s, _CHEAPEST_S))
        most = {
            rid: max(FIRST_RECORDS, int(count * (growth if rid in cut else _GROWTH)))
            for rid, count in taken.items()
        }
        if is_least or is_little:
            without_s = max(seconds - in_all_s, min(seconds, usual_s))
            recent_s = (*recent_s, without_s)[-USUAL_BATCHES:]
        if is_little:
            return replace(self, recent_s=recent_s, most=most)
        largest = 1.0 if is_least or seconds <= 2 * usual_s else inf
        factor = min(max((seconds - usual_s) / in_all_s, 0.5), largest)
        record_s = {
            rid: max(self.of(rid) * (1 + part_s / in_all_s * (factor - 1)), _CHEAPEST_S)
            for rid, part_s in expected.items()
        }
        return BatchCosts(recent_s, {**self.record_s, **record_s}, most)


def shares(
    waiting: Mapping[int, int], writing: Collection[int], costs: BatchCosts, bounds: BatchBounds
) -> dict[int, int]:
    """Rid -> how many of the records that wait a batch takes.

    `writing`: the replicas that wrote a change lately. If one of them is level, or nearly so, the
    batch is kept short for it; if all are behind, or nobody writes, it is as large as it may be,
    because that is fastest for all.
    """
    level = max(waiting.values(), default=0) / LEVEL
    is_short = any(waiting.get(rid, 0) <= level for rid in writing)
    if not is_short:
        return _split(waiting, costs, bounds.whole_s, bounds.records)
    seconds = min(bounds.shared_s, costs.usual_s, bounds.whole_s)
    few = {rid: min(count, costs.most_of(rid)) for rid, count in waiting.items()}
    return _split(few, costs, seconds, bounds.records)


def _split(
    waiting: Mapping[int, int], costs: BatchCosts, seconds: float, records: int
) -> dict[int, int]:
    """The largest even shares of a time, and of a number of records."""
    in_time = dict[int, int]()
    by_time = sorted(waiting, key=lambda rid: (waiting[rid] * costs.of(rid), rid))
    for others, rid in zip(range(len(by_time), 0, -1), by_time, strict=True):
        share = max(LEAST_RECORDS, int(seconds / others / costs.of(rid)))
        in_time[rid] = min(waiting[rid], share)
        seconds = max(0.0, seconds - in_time[rid] * costs.of(rid))
    found = dict[int, int]()
    by_count = sorted(in_time, key=lambda rid: (in_time[rid], rid))
    for others, rid in zip(range(len(by_count), 0, -1), by_count, strict=True):
        found[rid] = min(in_time[rid], max(1, records // others))
        records = max(0, records - found[rid])
    return found
