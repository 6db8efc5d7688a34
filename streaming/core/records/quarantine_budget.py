"""How much quarantine keeps of each replica: records as they are within its budget, then heads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from streaming.core.records.kept_bytes import KeptBytes
from streaming.core.records.record import RECORD_BYTES


class KeptSum(NamedTuple):
    """How many records of a replica are in quarantine, and how many of their bytes are kept."""

    records: int = 0
    bytes: int = 0

    def plus(self, other: "KeptSum") -> "KeptSum":
        """Add what another sum has."""
        return KeptSum(self.records + other.records, self.bytes + other.bytes)

    def minus(self, other: "KeptSum") -> "KeptSum":
        """Take away what another sum has."""
        return KeptSum(self.records - other.records, self.bytes - other.bytes)


NOTHING_KEPT = KeptSum()


class QuarantineLimits(NamedTuple):
    """What is kept of one record at most, and of all records of one replica.

    `bytes`, `records`: the budget of a replica. One record may exceed it.
    """

    record_bytes: int = RECORD_BYTES
    bytes: int = 64_000_000
    records: int = 100_000

    def used(self, kept: KeptSum) -> float:
        """The part of the budget that is used, as a ratio; from 1 on it is spent."""
        return max(kept.bytes / self.bytes, kept.records / self.records)

    def is_spent(self, kept: KeptSum) -> bool:
        """Return whether only a short head is kept of a further record."""
        return kept.bytes >= self.bytes or kept.records >= self.records


DEFAULT_LIMITS = QuarantineLimits()


@dataclass(slots=True)
class QuarantineBudget:
    """A batch's working copy of what is kept of each replica; `before`: rid -> its sum before it.

    What the batch releases and drops is given back before its records take of it.
    """

    limits: QuarantineLimits = DEFAULT_LIMITS
    before: Mapping[int, KeptSum] = field(default_factory=dict)
    sums: dict[int, KeptSum] = field(init=False)

    def __post_init__(self) -> None:
        self.sums = dict(self.before)

    def give_back(self, rid: int, gone: KeptSum) -> None:
        """Let a replica have back what its records took that are in quarantine no more."""
        self.sums[rid] = self.of(rid).minus(gone)

    def keep(self, rid: int, kept: KeptBytes) -> KeptBytes:
        """What is kept of the next record of a replica; it counts from now on."""
        before = self.of(rid)
        kept = kept.shortened() if self.limits.is_spent(before) else kept
        self.sums[rid] = before.plus(KeptSum(1, len(kept.value or b"")))
        return kept

    def of(self, rid: int) -> KeptSum:
        """The sum of a replica as it is now."""
        return self.sums.get(rid, NOTHING_KEPT)

    def changes(self) -> dict[int, KeptSum]:
        """Rid -> by how much its sum is another than before, where it is."""
        found = {
            rid: now.minus(self.before.get(rid, NOTHING_KEPT)) for rid, now in self.sums.items()
        }
        return {rid: change for rid, change in found.items() if change != NOTHING_KEPT}
