"""Pending lists: a transaction becomes eligible when nothing below its largest CSN is open.

The rule of 389 Directory Server (csnpl.c, roll up): per rid one list in CSN order; the RUV may
move over an entry only when everything before it in the list moves too.
"""

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

Context = tuple[str, int]
"""(prim_csn, announcing replica): names one transaction."""


@dataclass(slots=True)
class PendingLists:
    """Every CSN that was announced and has not become eligible, by rid and by transaction."""

    by_rid: dict[int, list[tuple[str, Context]]] = field(default_factory=dict)
    members: dict[Context, dict[str, int]] = field(default_factory=dict)
    committed: set[Context] = field(default_factory=set)

    def insert(self, csn: str, rid: int, context: Context) -> None:
        """Announce a CSN as part of a transaction."""
        insort(self.by_rid.setdefault(rid, []), (csn, context))
        self.members.setdefault(context, {})[csn] = rid

    def commit(self, context: Context) -> bool:
        """Mark a transaction as committed; False when it is unknown here."""
        if context not in self.members:
            return False
        self.committed.add(context)
        return True

    def remove(self, context: Context) -> tuple[str, ...]:
        """Take a transaction out, whatever its state; its CSNs in order."""
        csns = self.members.pop(context, {})
        self.committed.discard(context)
        for rid in set(csns.values()):
            left = [entry for entry in self.by_rid[rid] if entry[1] != context]
            if left:
                self.by_rid[rid] = left
            else:
                del self.by_rid[rid]
        return tuple(sorted(csns))

    def open_of(self, rid: int) -> tuple[Context, ...]:
        """The uncommitted transactions that this replica announced."""
        return tuple(c for c in self.members if c[1] == rid and c not in self.committed)

    def rids_of(self, context: Context) -> set[int]:
        """The replicas whose CSNs are part of this transaction."""
        return set(self.members[context].values())

    def eligible(
        self, rids: Iterable[int], ready: Callable[[Context], bool] = lambda _: True
    ) -> list[Context]:
        """The committed transactions touching these rids that nothing holds back.

        Held back: not `ready` (a hole in the opno below), or an entry below its largest CSN, in
        a list of one of its rids, belongs to a transaction that stays. What stays is found as a
        fixpoint, so several transactions that interleave become eligible together.
        """
        moving = {rid for rid in rids if self._head_moves(rid, ready)}
        touched = self._tied_to(moving)
        going = {c for c in touched & self.committed if ready(c)}
        while held := {c for c in going if self._is_held(c, going)}:
            going -= held
        return sorted(going, key=lambda c: max(self.members[c]))

    def _tied_to(self, rids: set[int]) -> set[Context]:
        """The transactions in the lists of these rids, and those that share a rid with them."""
        found, new, seen = set[Context](), rids, set[int]()
        while new:
            seen |= new
            contexts = {c for rid in new for _, c in self.by_rid[rid]} - found
            found |= contexts
            new = {rid for c in contexts for rid in self.members[c].values()} - seen
        return found

    def _head_moves(self, rid: int, ready: Callable[[Context], bool]) -> bool:
        """Claim that the smallest entry may go; where it stays, it holds everything back."""
        entries = self.by_rid.get(rid, [])
        return bool(entries) and entries[0][1] in self.committed and ready(entries[0][1])

    def _is_held(self, context: Context, going: set[Context]) -> bool:
        csns = self.members[context]
        largest = max(csns)
        return any(
            csn < largest and other not in going
            for rid in set(csns.values())
            for csn, other in self.by_rid[rid]
        )

    def copy(self) -> "PendingLists":
        """An independent copy."""
        return PendingLists(
            {rid: list(entries) for rid, entries in self.by_rid.items()},
            {context: dict(csns) for context, csns in self.members.items()},
            set(self.committed),
        )
