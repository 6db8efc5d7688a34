"""The ordinals of a replica's changes that were seen: a hole in them holds its changes back."""

from dataclasses import dataclass, replace

from streaming.core.state.replica_state import ReplicaState

ALL_BELOW_NEXT = 0
"""In the place of an ordinal, which begin with 1: all below the next one that comes are filled."""


@dataclass(slots=True)
class SeenOpnos:
    """One batch's working copy; adding costs the same however much is above a hole.

    `contiguous`: every ordinal up to here was seen; `above`: those seen beyond the first hole, or
    ALL_BELOW_NEXT alone.
    """

    contiguous: int
    above: set[int]

    def __contains__(self, opno: int) -> bool:
        return opno <= self.contiguous or opno in self.above

    def add(self, opno: int) -> None:
        """Note that this ordinal was seen; it may fill the first hole."""
        if ALL_BELOW_NEXT in self.above:
            self.above.remove(ALL_BELOW_NEXT)
            self.contiguous = max(self.contiguous, opno - 1)
        if opno <= self.contiguous:
            return
        self.above.add(opno)
        while self.contiguous + 1 in self.above:
            self.contiguous += 1
            self.above.remove(self.contiguous)

    def fill_holes(self) -> None:
        """Count every ordinal below the largest one as seen, and every one below the next."""
        self.contiguous = max([self.contiguous, *self.above])
        self.above = {ALL_BELOW_NEXT}

    def is_next(self, opno: int | None) -> bool:
        """Return whether there is no hole below this ordinal; None: it is not numbered."""
        if opno is None:
            return self.above <= {ALL_BELOW_NEXT}
        return not self.above and opno == self.contiguous + 1

    def of(self, replica: ReplicaState) -> ReplicaState:
        """The replica with these ordinals."""
        return replace(replica, opno=self.contiguous, opno_above=frozenset(self.above))


def seen_opnos(replica: ReplicaState) -> SeenOpnos:
    """A working copy of the ordinals in a replica's state."""
    return SeenOpnos(replica.opno, set(replica.opno_above))
