"""Which CSNs are known, and by what content: this separates a repeat from a reused CSN."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streaming.core.model.csn import rid_of
from streaming.core.model.row import Arrived
from streaming.core.state.open_transactions import OpenTransactions
from streaming.core.state.pending import Context


@dataclass(slots=True)
class KnownCsns:
    """What one batch knows of CSNs: by `open` and `history` from before, and by what it took.

    `history`: csn -> contents of what is in the changelog or the quarantine, for the CSNs of
    this batch that are not above their replica's largest in any RUV at its start; and of what is
    in `pending`, for those that may be on disk only. `largest`: rid
    -> the largest eligible CSN in any data set. `passed`: what this batch made eligible.
    `remembered`: rid -> the CSNs above its largest that were ended or quarantined.
    """

    open: OpenTransactions
    history: Mapping[str, frozenset[str]]
    largest: dict[int, str]
    passed: dict[str, str] = field(default_factory=dict)
    remembered: dict[int, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Sort by replica what is remembered from before."""
        own = ((csn, rid_of(csn)) for csn in (*self.open.ended_csns, *self.open.quarantined))
        for csn, rid in (*own, *self.open.ended):
            if csn > self.largest.get(rid, ""):
                self.remembered.setdefault(rid, []).append(csn)

    def contents(self, csn: str) -> set[str]:
        """The contents under which this CSN is known; none: it is new."""
        arrived = self.open.changes.get(csn)
        pending = arrived.content if arrived else None
        one = (pending, self.passed.get(csn), self.open.ended_csns.get(csn))
        many = (self.open.quarantined.get(csn, ()), self.history.get(csn, ()))
        return {content for content in one if content}.union(*many)

    def make_eligible(self, csn: str, rid: int, content: str) -> None:
        """Note that a change became eligible."""
        self.passed[csn] = content
        self.largest[rid] = max(csn, self.largest.get(rid, ""))

    def quarantine(self, csn: str, content: str) -> None:
        """Let a repeat of this quarantined change count as a duplicate."""
        self.open.quarantined[csn] = (*self.open.quarantined.get(csn, ()), content)
        self.remembered.setdefault(rid_of(csn), []).append(csn)

    def end(self, context: Context, gone: list[Arrived]) -> None:
        """Let a repeat of what an ended transaction wrote count as a duplicate."""
        contents = {arrived.change.csn: arrived.content for arrived in gone}
        self.open.ended_csns.update(contents)
        self.remembered.setdefault(context[1], []).extend((context[0], *contents))

    def is_clear(self, rid: int, first: str, last: str | None) -> bool:
        """Return whether all CSNs from the first to the last are new; last None: all above."""
        if first <= max(self.largest.get(rid, ""), self.open.on_disk.get(rid, "")):
            return False
        return not any(first <= csn <= (last or csn) for csn in self.remembered.get(rid, ()))
