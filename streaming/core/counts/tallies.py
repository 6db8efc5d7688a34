"""What is counted of each replica, with what: its changes, what is wrong with them, conflicts.

The keys stand among the totals of table `epochs`, so that they go on when a hub starts again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from streaming.core.conflict.judge import ConflictKind, Judged, Verdict
from streaming.core.counts.counter_keys import (
    CHANGES,
    CONFLICTS,
    DUPLICATES,
    KEPT,
    OLD_GENERATION,
    QUARANTINED,
    SEPARATOR,
    WITHOUT_VALUE,
    counter,
    tally,
)
from streaming.core.records.arrival import Quarantined
from streaming.core.records.quarantine_budget import KeptSum
from streaming.core.state.topology import Topology

_RECORDS = "records"
_BYTES = "bytes"


def judged_changes(eligible: Mapping[int, int], judged: Iterable[Judged]) -> Counter[str]:
    """Count the changes of each replica by verdict; those that core did not judge are accepted.

    `eligible`: rid -> how many of its changes are judged in the batch, by whomever.
    """
    found = Counter[str]()
    for rid, count in eligible.items():
        found[counter(CHANGES, rid, Verdict.ACCEPTED)] = count
    for one in judged:
        if one.verdict is not Verdict.ACCEPTED:
            found[counter(CHANGES, one.arrived.change.rid, Verdict.ACCEPTED)] -= 1
            found[counter(CHANGES, one.arrived.change.rid, one.verdict)] += 1
    return found


def quarantined_records(quarantined: Iterable[Quarantined]) -> Counter[str]:
    """Count the records of each replica by the reason why they are in quarantine."""
    return Counter(counter(QUARANTINED, one.rid, one.reason) for one in quarantined)


def kept_records(sums: Mapping[int, KeptSum]) -> dict[str, int]:
    """Count what quarantine keeps of each replica, or by how much that changes."""
    records = {counter(KEPT, rid, _RECORDS): one.records for rid, one in sums.items()}
    return {**records, **{counter(KEPT, rid, _BYTES): one.bytes for rid, one in sums.items()}}


def kept_sums(totals: Mapping[str, int]) -> dict[int, KeptSum]:
    """Return what quarantine keeps of each replica by these totals; see kept_records."""
    found = tally(totals, KEPT)
    rids = sorted({rid for rid, _ in found})
    return {
        rid: KeptSum(found.get((rid, _RECORDS), 0), found.get((rid, _BYTES), 0)) for rid in rids
    }


def duplicate(rid: int) -> str:
    """Return the key that counts a replica's duplicates."""
    return counter(DUPLICATES, rid, _RECORDS)


def old_generation(rid: int) -> str:
    """Return the key that counts a replica's answers to a hub whose state was restored since."""
    return counter(OLD_GENERATION, rid, _RECORDS)


def without_value(rid: int) -> str:
    """Return the key that counts the offsets of a replica's topic without a record with a value."""
    return counter(WITHOUT_VALUE, rid, _RECORDS)


def recorded_conflicts(judged: Iterable[Judged], topology: Topology) -> Counter[str]:
    """Count the conflicts of a batch as `conflicts` records them, each at its loser."""
    found = Counter[str]()
    for one in judged:
        if one.conflict is not None:
            change = one.arrived.change
            rid = one.before.author if one.row_lost else change.rid
            rule = topology.tables[change.table].function.rule
            found[_conflict(one.conflict, rule, rid, change.table)] += 1
    return found


def refused_row(rid: int, table: str) -> str:
    """Return the key that counts the rows of a table that a replica's database refused."""
    return _conflict(ConflictKind.REFUSED, "", rid, table)


def _conflict(kind: ConflictKind, rule: str, rid: int, table: str) -> str:
    return counter(SEPARATOR.join((CONFLICTS, kind, rule)), rid, table)
