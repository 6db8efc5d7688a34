"""What the hub's RUVs span while a batch is taken in: the first and last CSN of each element."""

from dataclasses import dataclass, field

from streaming.core.intake.pending import ListKey
from streaming.core.model.ruv import Ruv
from streaming.core.model.state import HubState


@dataclass(slots=True)
class RuvBuilder:
    """The elements of each RUV before the batch, and behind what it made eligible so far."""

    state: HubState
    first: dict[ListKey, str] = field(init=False)
    last: dict[ListKey, str] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with the RUVs of the state."""
        self.first, self.last = {}, {}
        for dataset, ruv in self.state.ruvs.items():
            for rid, element in ruv.elements.items():
                if element.max_csn and element.min_csn:
                    self.first[dataset, rid] = element.min_csn
                    self.last[dataset, rid] = element.max_csn

    def extend(self, key: ListKey, first: str, last: str) -> None:
        """Let an element know the CSNs from the first to the last, which became eligible."""
        self.first.setdefault(key, first)
        self.last[key] = max(last, self.last.get(key, ""))

    def largest(self, key: ListKey) -> str:
        """The largest CSN of an element, empty if it has none."""
        return self.last.get(key, "")

    def largest_in(self, dataset: str) -> dict[int, str]:
        """Rid -> its largest CSN in this data set."""
        return {rid: csn for (of, rid), csn in self.last.items() if of == dataset}

    @property
    def ruvs(self) -> dict[str, Ruv]:
        """The hub's RUV of each data set."""
        ruvs = dict(self.state.ruvs)
        for (dataset, rid), csn in self.first.items():
            ruv = ruvs.get(dataset) or self.state.ruv_of(dataset)
            ruvs[dataset] = ruv.with_csn(csn).with_csn(self.last[dataset, rid])
        return ruvs
