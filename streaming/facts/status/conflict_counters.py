"""Counts of conflicts per replica and table: under NDB's names, and as they are recorded."""

from collections.abc import Mapping
from dataclasses import dataclass

from streaming.core.counts.counter_keys import CONFLICT_COUNTER, conflict_tallies, split_counter


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


def conflict_counts(
    totals: Mapping[str, int], names: Mapping[int, str]
) -> tuple[ConflictCount, ...]:
    """The recorded conflicts that the totals count, in order of their kinds and tables."""
    found = (
        ConflictCount(one.kind, one.rule, one.table, names.get(one.rid, str(one.rid)), one.count)
        for one in conflict_tallies(totals)
        if one.count
    )
    return tuple(sorted(found, key=lambda one: (one.kind, one.table, one.replica, one.function)))


def conflict_kinds(totals: Mapping[str, int]) -> dict[str, int]:
    """Kind of conflict -> how many are recorded by these totals."""
    found: dict[str, int] = {}
    for one in conflict_tallies(totals):
        found[one.kind] = found.get(one.kind, 0) + one.count
    return found


def without_counters(totals: Mapping[str, int]) -> dict[str, int]:
    """The totals without what is counted of each replica."""
    return {name: count for name, count in totals.items() if split_counter(name) is None}


def conflict_counters(
    totals: Mapping[str, int], names: Mapping[int, str]
) -> tuple[ConflictCounters, ...]:
    """The counters of each replica and table that has any, in order of rid and table."""
    split = [(split_counter(key), count) for key, count in totals.items()]
    found: dict[tuple[int, str], dict[str, int]] = {}
    for (name, rid, table), count in ((of, count) for of, count in split if of and count):
        if not name.startswith(CONFLICT_COUNTER):
            continue
        found.setdefault((rid, table), {})[name] = count
    return tuple(
        ConflictCounters(rid, names.get(rid, str(rid)), table, dict(sorted(counters.items())))
        for (rid, table), counters in sorted(found.items())
    )
