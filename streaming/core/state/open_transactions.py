"""Transactions that are announced and not judged, and the memory of those that never will be."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from streaming.core.model.change import RowKey
from streaming.core.model.row import Arrived
from streaming.core.model.ruv import Ruv
from streaming.core.state.pending import Context, PendingLists


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """A transaction that never will be judged: why, and the rows that it was known to write.

    reason: aborted (by its replica) · hello (its replica started anew; no commit seen since) ·
    operator (by hand, its rows refreshed at the origin; nothing more of it seen since) ·
    ended, late, reused (in quarantine, its rows refreshed at the origin).
    on_disk: its rows and CSNs are not in memory; table `pending` has them.
    """

    reason: str
    rows: tuple[RowKey, ...]
    on_disk: bool = False


@dataclass(frozen=True, slots=True)
class Evicted:
    """A transaction of which the images, and the facts of most changes, are only in `pending`.

    `absent`: how many of its changes are not in memory. `merged`: it stands for several whole
    transactions of one list that wait one behind the other, and has the name of the last one.
    """

    absent: int
    merged: bool = False


@dataclass(slots=True)
class OpenTransactions:
    """Everything that is announced and not judged, and the memory of what never will be.

    `evicted`: what of it is on disk (core/intake/eviction.py). `on_disk`: rid -> a CSN up to which
    `pending` may know CSNs that memory does not.
    """

    lists: PendingLists = field(default_factory=PendingLists)
    changes: dict[str, Arrived] = field(default_factory=dict)
    ended: dict[Context, EndedTransaction] = field(default_factory=dict)
    ended_csns: dict[str, str] = field(default_factory=dict)
    quarantined: dict[str, tuple[str, ...]] = field(default_factory=dict)
    evicted: dict[Context, Evicted] = field(default_factory=dict)
    on_disk: dict[int, str] = field(default_factory=dict)

    def forget(self, ruvs: Iterable[Ruv]) -> None:
        """Drop the memory of quarantined CSNs that a RUV covers: a repeat is looked up."""
        if self.quarantined:
            known = tuple(ruvs)
            self.quarantined = {
                csn: contents
                for csn, contents in self.quarantined.items()
                if not any(ruv.covers(csn) for ruv in known)
            }

    def copy(self) -> "OpenTransactions":
        """An independent copy; the values themselves never change."""
        return OpenTransactions(
            self.lists.copy(),
            dict(self.changes),
            dict(self.ended),
            dict(self.ended_csns),
            dict(self.quarantined),
            dict(self.evicted),
            dict(self.on_disk),
        )
