"""The ordinals of a replica's changes that were seen: a hole in them holds its changes back."""

from dataclasses import dataclass, replace

from streaming.core.model.state import ReplicaState


@dataclass(slots=True)
class SeenOpnos:
    """One batch's working copy; adding costs the same however much is above a hole.

    `contiguous`: every ordinal up to here was seen; `above`: those seen beyond the first hole.
    """

    contiguous: int
    above: set[int]

    def __contains__(self, opno: int) -> bool:
        """Return whether this ordinal was seen."""
        return opno <= self.contiguous or opno in self.above

    def add(self, opno: int) -> None:
        """Note that this ordinal was seen; it may fill the first hole."""
        if opno <= self.contiguous:
            return
        self.above.add(opno)
        while self.contiguous + 1 in self.above:
            self.contiguous += 1
            self.above.remove(self.contiguous)

    def fill_holes(self) -> None:
        """Count every ordinal below the largest one as seen."""
        self.contiguous = max(self.contiguous, *self.above) if self.above else self.contiguous
        self.above.clear()

    def of(self, replica: ReplicaState) -> ReplicaState:
        """The replica with these ordinals."""
        return replace(replica, opno=self.contiguous, opno_above=frozenset(self.above))


def seen_opnos(replica: ReplicaState) -> SeenOpnos:
    """A working copy of the ordinals in a replica's state."""
    return SeenOpnos(replica.opno, set(replica.opno_above))
