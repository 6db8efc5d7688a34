"""Counts of conflicts per replica and table: under NDB's names, and as they are recorded."""

from collections.abc import Mapping
from dataclasses import dataclass

from streaming.core.counts.counter_keys import CONFLICT_COUNTER, Counts, of_conflicts, of_replicas


@dataclass(frozen=True, slots=True)
class ConflictCounters:
    """The counters of one replica's changes to one table, by name in alphabetical order."""

    rid: int
    replica: str
    table: str
    counters: dict[str, int]


@dataclass(frozen=True, slots=True)
class ConflictCount:
    """How many conflicts are recorded of a kind, function, table and losing replica."""

    kind: str
    function: str
    table: str
    replica: str
    count: int


def conflict_counts(totals: Counts, names: Mapping[int, str]) -> tuple[ConflictCount, ...]:
    """The recorded conflicts that the totals count, in order of their kinds and tables."""
    found = (
        ConflictCount(one.kind, one.rule, one.table, names.get(one.rid, str(one.rid)), count)
        for one, count in of_conflicts(totals).items()
        if count
    )
    return tuple(sorted(found, key=lambda one: (one.kind, one.table, one.replica, one.function)))


def conflict_kinds(totals: Counts) -> dict[str, int]:
    """Kind of conflict -> how many are recorded by these totals."""
    found: dict[str, int] = {}
    for one, count in of_conflicts(totals).items():
        found[one.kind] = found.get(one.kind, 0) + count
    return found


def conflict_counters(totals: Counts, names: Mapping[int, str]) -> tuple[ConflictCounters, ...]:
    """The counters of each replica and table that has any, in order of rid and table."""
    found: dict[tuple[int, str], dict[str, int]] = {}
    for (name, rid, table), count in of_replicas(totals).items():
        if count and name.startswith(CONFLICT_COUNTER):
            found.setdefault((rid, table), {})[name] = count
    return tuple(
        ConflictCounters(rid, names.get(rid, str(rid)), table, dict(sorted(counters.items())))
        for (rid, table), counters in sorted(found.items())
    )
