"""The keys of what is counted of each replica among the totals of `epochs`, and reading by them.

Who only reads totals needs nothing of what counts.
"""

from collections.abc import Mapping
from typing import NamedTuple

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

_SEPARATOR = ":"
"""Between the parts of the stored name of a conflict."""
RECORDS = "records"
"""What is counted, where a name says all else."""


class ReplicaKey(NamedTuple):
    """What is counted of a replica; `of`: the table, the verdict, the reason, or RECORDS."""

    name: str
    rid: int
    of: str = RECORDS


class ConflictKey(NamedTuple):
    """Recorded conflicts of one kind, function, losing replica and table."""

    kind: str
    rule: str
    rid: int
    table: str


CountKey = str | ReplicaKey | ConflictKey
"""What a batch counts: a text is of the hub as a whole."""
Counts = Mapping[CountKey, int]


def key_text(key: CountKey) -> str:
    """Return the key as `epochs` holds it."""
    match key:
        case ReplicaKey(name, rid, of):
            return f"{name}/{rid}/{of}"
        case ConflictKey(kind, rule, rid, table):
            return f"{_SEPARATOR.join((CONFLICTS, kind, rule))}/{rid}/{table}"
        case _:
            return key


def parse_key(text: str) -> CountKey:
    """Parse a key that `key_text` wrote."""
    parts = text.split("/", 2)
    if len(parts) < 3:
        return text
    name, rid, of = parts[0], int(parts[1]), parts[2]
    if not name.startswith(CONFLICTS + _SEPARATOR):
        return ReplicaKey(name, rid, of)
    _, kind, rule = name.split(_SEPARATOR)
    return ConflictKey(kind, rule, rid, of)


def of_hub(counts: Counts) -> dict[str, int]:
    """Return what is counted of the hub as a whole."""
    return {key: count for key, count in counts.items() if isinstance(key, str)}


def of_conflicts(counts: Counts) -> dict[ConflictKey, int]:
    """Return what is counted of recorded conflicts."""
    return {key: count for key, count in counts.items() if isinstance(key, ConflictKey)}


def of_replicas(counts: Counts) -> dict[ReplicaKey, int]:
    """Return what is counted of each replica."""
    return {key: count for key, count in counts.items() if isinstance(key, ReplicaKey)}


def tally(counts: Counts, name: str) -> dict[tuple[int, str], int]:
    """Return what is counted of replicas under one name: (rid, verdict or reason) -> count."""
    found = of_replicas(counts)
    return {(key.rid, key.of): count for key, count in found.items() if key.name == name}
