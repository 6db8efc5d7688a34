"""Pending lists: a transaction becomes eligible when nothing before it in any list is open.

The rule of 389 Directory Server (csnpl.c, roll up): per data set and rid one list in CSN order;
the RUV may move past an entry only together with everything before it in the list.
"""

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

Context = tuple[str, int]
"""(prim_csn, rid of the topic): names one transaction."""

ListKey = tuple[str, int]
"""(data set, rid): names one pending list, and the element of a RUV that it moves."""


@dataclass(slots=True)
class PendingLists:
    """Every CSN that was received and has not become eligible, by list and by transaction.

    A transaction may have CSNs of several rids (document 001, 2.2) and in several data sets
    (2.3); it is committed, cancelled and rolled up as a whole, in all its lists at once.
    """

    by_list: dict[ListKey, list[tuple[str, Context]]] = field(default_factory=dict)
    members: dict[Context, dict[str, ListKey]] = field(default_factory=dict)
    committed: set[Context] = field(default_factory=set)

    def insert(self, csn: str, key: ListKey, context: Context) -> None:
        """Insert a CSN as part of a transaction."""
        insort(self.by_list.setdefault(key, []), (csn, context))
        self.members.setdefault(context, {})[csn] = key

    def commit(self, context: Context) -> bool:
        """Mark a transaction as committed; False when it is unknown here."""
        if context not in self.members:
            return False
        self.committed.add(context)
        return True

    def remove(self, context: Context) -> tuple[str, ...]:
        """Remove a transaction in whatever state; return its CSNs in order."""
        csns = self.members.pop(context, {})
        self.committed.discard(context)
        for key in set(csns.values()):
            left = [entry for entry in self.by_list[key] if entry[1] != context]
            if left:
                self.by_list[key] = left
            else:
                del self.by_list[key]
        return tuple(sorted(csns))

    def csns_of(self, context: Context) -> list[str]:
        """Return the CSNs of a transaction in order; that of their arrival is lost with memory."""
        return sorted(self.members.get(context, ()))

    def open_of(self, rid: int) -> tuple[Context, ...]:
        """Return the uncommitted transactions of this replica's topic, in CSN order."""
        return tuple(sorted(c for c in self.members if c[1] == rid and c not in self.committed))

    def open_with(self, csn: str) -> tuple[Context, ...]:
        """Return the uncommitted transactions with this CSN, as primary or member, in CSN order."""
        found = (
            context
            for context, csns in self.members.items()
            if context not in self.committed and (context[0] == csn or csn in csns)
        )
        return tuple(sorted(found))

    def is_quiet(self, rid: int) -> bool:
        """Return whether no list of any data set has a CSN of this replica."""
        return not any(key[1] == rid for key in self.by_list)

    def largest_of(self, rid: int) -> str:
        """Return the largest CSN of this replica in the lists of all data sets; empty: none."""
        last = (entries[-1][0] for key, entries in self.by_list.items() if key[1] == rid)
        return max(last, default="")

    def lists_of(self, context: Context) -> set[ListKey]:
        """Return the lists in which this transaction has CSNs."""
        return set(self.members[context].values())

    def eligible(
        self, keys: Iterable[ListKey], ready: Callable[[Context], bool] = lambda _: True
    ) -> list[Context]:
        """Return the committed transactions, in these lists or tied to them, that can leave.

        Held back: not `ready` (a hole in the opno below), or in one of its lists an entry below
        its largest CSN there belongs to a transaction that is held back. These are computed as a
        fixpoint, so interleaved transactions become eligible together.
        """
        moving = {key for key in keys if self._head_moves(key, ready)}
        if not moving:
            return []
        touched = self._tied_to(moving)
        going = {c for c in touched & self.committed if ready(c)}
        while held := {c for c in going if self._is_held(c, going)}:
            going -= held
        return sorted(going, key=lambda c: max(self.members[c]))

    def _tied_to(self, keys: set[ListKey]) -> set[Context]:
        """Return the transactions in these lists, and all that share a list with one of them."""
        found, new, seen = set[Context](), keys, set[ListKey]()
        while new:
            seen |= new
            contexts = {c for key in new for _, c in self.by_list[key]} - found
            found |= contexts
            new = {key for c in contexts for key in self.members[c].values()} - seen
        return found

    def _head_moves(self, key: ListKey, ready: Callable[[Context], bool]) -> bool:
        """Return whether the smallest entry may leave; otherwise it holds back the rest."""
        entries = self.by_list.get(key, [])
        return bool(entries) and entries[0][1] in self.committed and ready(entries[0][1])

    def _is_held(self, context: Context, going: set[Context]) -> bool:
        largest: dict[ListKey, str] = {}
        for csn, key in self.members[context].items():
            largest[key] = max(csn, largest.get(key, ""))
        return any(
            csn < top and other not in going
            for key, top in largest.items()
            for csn, other in self.by_list[key]
        )

    def copy(self) -> "PendingLists":
        """An independent copy."""
        return PendingLists(
            {key: list(entries) for key, entries in self.by_list.items()},
            {context: dict(csns) for context, csns in self.members.items()},
            set(self.committed),
        )
