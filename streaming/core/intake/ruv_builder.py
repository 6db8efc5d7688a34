"""Builds the hub's RUVs during intake: the first and the last CSN of each element."""

from dataclasses import dataclass, field

from streaming.core.model.ruv import Ruv
from streaming.core.state.hub_state import HubState
from streaming.core.state.pending import ListKey


@dataclass(slots=True)
class RuvBuilder:
    """The elements of each RUV: those before the batch, extended by what became eligible."""

    state: HubState
    first: dict[ListKey, str] = field(init=False)
    last: dict[ListKey, str] = field(init=False)

    def __post_init__(self) -> None:
        self.first, self.last = {}, {}
        for dataset, ruv in self.state.ruvs.items():
            for rid, element in ruv.elements.items():
                if element.max_csn and element.min_csn:
                    self.first[dataset, rid] = element.min_csn
                    self.last[dataset, rid] = element.max_csn

    def extend(self, key: ListKey, first: str, last: str) -> None:
        """Extend an element by the eligible CSNs from the first to the last.

        Of transactions that become eligible at once, the one that goes first, by its largest CSN,
        need not have the smallest.
        """
        self.first[key] = min(first, self.first.get(key, first))
        self.last[key] = max(last, self.last.get(key, ""))

    def largest(self, key: ListKey) -> str:
        """Return the largest CSN of an element; empty: none."""
        return self.last.get(key, "")

    @property
    def ruvs(self) -> dict[str, Ruv]:
        """Return the hub's RUV of each data set."""
        ruvs = dict(self.state.ruvs)
        for (dataset, rid), csn in self.first.items():
            ruv = ruvs.get(dataset) or self.state.ruv_of(dataset)
            ruvs[dataset] = ruv.with_csn(csn).with_csn(self.last[dataset, rid])
        return ruvs
