"""The keys of what is counted of each replica among the totals of `epochs`, and reading by them.

Who only reads totals needs nothing of what counts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

CONFLICT_COUNTER = "conflict_"
"""What the names of conflict counters begin with, as they have them in NDB."""
CHANGES = "changes"
"""Judged changes of a replica, by verdict."""
QUARANTINED = "quarantined"
"""Quarantined records of a replica, by reason."""
DUPLICATES = "duplicates"
"""Records of a replica that came again."""
KEPT = "kept"
"""Records of a replica that are in quarantine, and how many of their bytes are kept."""
OLD_GENERATION = "old_generation"
"""Records of a replica that answer what was sent before the hub's state was restored."""
WITHOUT_VALUE = "without_value"
"""Offsets of a replica's topic that were read, and at which no record with a value stands."""
CONFLICTS = "conflicts"
"""Recorded conflicts by the loser's replica and table; kind and rule stand in the name."""

SEPARATOR = ":"
"""Between the parts of the name of a tally of conflicts."""


@dataclass(frozen=True, slots=True)
class ConflictTally:
    """How many conflicts are recorded of one kind, function, table and losing replica."""

    kind: str
    rule: str
    table: str
    rid: int
    count: int


def counter(name: str, rid: int, table: str) -> str:
    """Return the key of a counter in the totals of table `epochs`."""
    return f"{name}/{rid}/{table}"


def split_counter(key: str) -> tuple[str, int, str] | None:
    """Split a counter's key into (name, rid, table); None if the total is no such counter."""
    parts = key.split("/", 2)
    return (parts[0], int(parts[1]), parts[2]) if len(parts) == 3 else None


def conflict_tallies(totals: Mapping[str, int]) -> Iterator[ConflictTally]:
    """Yield what the totals hold of recorded conflicts."""
    for key, count in totals.items():
        split = split_counter(key)
        if split is not None and split[0].startswith(CONFLICTS + SEPARATOR):
            _, kind, rule = split[0].split(SEPARATOR)
            yield ConflictTally(kind, rule, split[2], split[1], count)


def tally(totals: Mapping[str, int], name: str) -> dict[tuple[int, str], int]:
    """Return what the totals hold under one of the names: (rid, verdict or reason) -> count."""
    split = ((split_counter(key), count) for key, count in totals.items())
    return {(of[1], of[2]): count for of, count in split if of is not None and of[0] == name}
