"""Conflict counters per replica and table, under NDB's names."""

from collections.abc import Mapping
from dataclasses import dataclass

from streaming.core.conflict.counters import CONFLICT_COUNTER, split_counter


@dataclass(frozen=True, slots=True)
class ConflictCounters:
    """The counters of one replica's changes to one table, by name in alphabetical order."""

    rid: int
    replica: str
    table: str
    counters: dict[str, int]


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
