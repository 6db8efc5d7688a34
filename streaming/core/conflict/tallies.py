"""What is counted of each replica, with what: its changes, what is wrong with them, conflicts.

The keys stand among the totals of table `epochs`, so that they go on when a hub starts again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from streaming.core.conflict.counters import counter, split_counter
from streaming.core.conflict.judge import ConflictKind, Judged, Verdict
from streaming.core.intake.arrival import Quarantined
from streaming.core.model.topology import Topology

CHANGES = "changes"
"""Judged changes of a replica, by verdict."""
QUARANTINED = "quarantined"
"""Quarantined records of a replica, by reason."""
DUPLICATES = "duplicates"
"""Records of a replica that came again."""
OLD_GENERATION = "old_generation"
"""Records of a replica that answer what was sent before the hub's state was put back."""
WITHOUT_VALUE = "without_value"
"""Offsets of a replica's topic that were read, and at which no record with a value stands."""
CONFLICTS = "conflicts"
"""Recorded conflicts by the loser's replica and table; kind and rule stand in the name."""

_SEPARATOR = ":"
_RECORDS = "records"


@dataclass(frozen=True, slots=True)
class ConflictTally:
    """How many conflicts are recorded of one kind, function, table and losing replica."""

    kind: str
    rule: str
    table: str
    rid: int
    count: int


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


def duplicate(rid: int) -> str:
    """Return the key that counts a replica's duplicates."""
    return counter(DUPLICATES, rid, _RECORDS)


def old_generation(rid: int) -> str:
    """Return the key that counts a replica's answers to a hub whose state was put back since."""
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
    return counter(_SEPARATOR.join((CONFLICTS, kind, rule)), rid, table)


def conflict_tallies(totals: Mapping[str, int]) -> Iterator[ConflictTally]:
    """Yield what the totals hold of recorded conflicts."""
    for key, count in totals.items():
        split = split_counter(key)
        if split is not None and split[0].startswith(CONFLICTS + _SEPARATOR):
            _, kind, rule = split[0].split(_SEPARATOR)
            yield ConflictTally(kind, rule, split[2], split[1], count)


def tally(totals: Mapping[str, int], name: str) -> dict[tuple[int, str], int]:
    """Return what the totals hold under one of the names: (rid, verdict or reason) -> count."""
    split = ((split_counter(key), count) for key, count in totals.items())
    return {(of[1], of[2]): count for of, count in split if of is not None and of[0] == name}
