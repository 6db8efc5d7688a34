"""What is counted of each replica, with what: its changes, what is wrong with them, conflicts.

The keys stand among the totals of table `epochs`, so that they go on when a hub starts again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from streaming.core.conflict.judge import ConflictKind, Judged, Verdict
from streaming.core.counts.counter_keys import (
    CHANGES,
    KEPT,
    QUARANTINED,
    RECORDS,
    ConflictKey,
    CountKey,
    Counts,
    ReplicaKey,
    tally,
)
from streaming.core.records.arrival import Quarantined
from streaming.core.records.quarantine_budget import KeptSum
from streaming.core.state.topology import Topology

_BYTES = "bytes"


def judged_changes(eligible: Mapping[int, int], judged: Iterable[Judged]) -> Counter[CountKey]:
    """Count the changes of each replica by verdict; those that core did not judge are accepted.

    `eligible`: rid -> how many of its changes are judged in the batch, by whomever.
    """
    found = Counter[CountKey]()
    for rid, count in eligible.items():
        found[ReplicaKey(CHANGES, rid, Verdict.ACCEPTED)] = count
    for one in judged:
        if one.verdict is not Verdict.ACCEPTED:
            found[ReplicaKey(CHANGES, one.arrived.change.rid, Verdict.ACCEPTED)] -= 1
            found[ReplicaKey(CHANGES, one.arrived.change.rid, one.verdict)] += 1
    return found


def quarantined_records(quarantined: Iterable[Quarantined]) -> Counter[CountKey]:
    """Count the records of each replica by the reason why they are in quarantine."""
    return Counter(ReplicaKey(QUARANTINED, one.rid, one.reason) for one in quarantined)


def kept_records(sums: Mapping[int, KeptSum]) -> dict[CountKey, int]:
    """Count what quarantine keeps of each replica, or by how much that changes."""
    found = dict[CountKey, int]()
    for rid, one in sums.items():
        found[ReplicaKey(KEPT, rid)] = one.records
        found[ReplicaKey(KEPT, rid, _BYTES)] = one.bytes
    return found


def kept_sums(totals: Counts) -> dict[int, KeptSum]:
    """Return what quarantine keeps of each replica by these totals; see kept_records."""
    found = tally(totals, KEPT)
    rids = sorted({rid for rid, _ in found})
    return {rid: KeptSum(found.get((rid, RECORDS), 0), found.get((rid, _BYTES), 0)) for rid in rids}


def recorded_conflicts(judged: Iterable[Judged], topology: Topology) -> Counter[CountKey]:
    """Count the conflicts of a batch as `conflicts` records them, each at its loser."""
    found = Counter[CountKey]()
    for one in judged:
        if one.conflict is not None:
            change = one.arrived.change
            rid = one.before.author if one.row_lost else change.rid
            rule = topology.tables[change.table].function.rule
            found[ConflictKey(one.conflict, rule, rid, change.table)] += 1
    return found


def refused_row(rid: int, table: str) -> CountKey:
    """Return the key that counts the rows of a table that a replica's database refused."""
    return ConflictKey(ConflictKind.REFUSED, "", rid, table)
