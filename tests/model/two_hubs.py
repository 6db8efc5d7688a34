"""Two hubs on one set of topics: each reads all of them, and has agreements of its own."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from streaming.core.matrix.packets import Place
from streaming.core.records.record import Record, Stopped, Update
from streaming.core.state.topology import Topology
from tests.model.backend import RuvComparison
from tests.model.hub import PureHub

OTHER = "other."
"""How the names of the other hub's agreements begin."""


@dataclass(slots=True)
class TwoHubs(PureHub):
    """The hub that serves, and another one; each replica reads the updates of one of them.

    What the world asks a hub, it asks the one that serves. `there`: the rids of the replicas that
    read the other one's updates.
    """

    other: PureHub = field(init=False)
    there: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Start both with no batch, as two copies of one backup."""
        PureHub.__post_init__(self)  # super() does not know a class with slots
        self.other = PureHub(renamed(self.topology))

    def swap(self) -> None:
        """Have the other hub be the one that serves."""
        names = [name for name in PureHub.__slots__ if name not in TwoHubs.__slots__]
        mine = {name: getattr(self, name) for name in names}
        for name in names:
            setattr(self, name, getattr(self.other, name))
            setattr(self.other, name, mine[name])
        self.there = {*self.state.replicas} - self.there

    def agreement_read_by(self, rid: int) -> str:
        """The agreement whose updates this replica reads."""
        hub = self.other if rid in self.there else self
        return hub.topology.agreement_of(rid) or ""

    def send(
        self,
        rid: int,
        session: str | None,
        record: Record,
        time_ms: int,
        place: Place | None = None,
    ) -> None:
        """Append a record to a replica's topic, which both read."""
        PureHub.send(self, rid, session, record, time_ms, place)
        self.other.send(rid, session, record, time_ms, place)

    def updates(self, rid: int) -> Sequence[Update | Stopped]:
        """Every record of the updates topic that this replica reads."""
        return self.other.sent[rid] if rid in self.there else self.sent[rid]

    def take_beside(self, now_ms: int, pages: Collection[int]) -> None:
        """Let the other hub process all there is."""
        self.other.take(None, now_ms, None, pages)

    def standing(self, rid: int) -> RuvComparison:
        """The agreement that this replica reads, as the `status` of its hub shows it."""
        return self.other.standing(rid) if rid in self.there else PureHub.standing(self, rid)

    def lost_elsewhere(self) -> Collection[str | None]:
        """The CSNs of the losers that the other hub has recorded."""
        return {one.loser for one in self.other.conflicts()}


def renamed(topology: Topology) -> Topology:
    """The topology of the other hub: the same agreements under names of its own."""
    subscriptions = {
        f"{OTHER}{name}": replace(one, name=f"{OTHER}{name}")
        for name, one in topology.subscriptions.items()
    }
    return replace(topology, subscriptions=subscriptions)
