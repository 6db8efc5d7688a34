"""A replica's topic in a few words, and the hub state before the first batch."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from streaming.core.intake.intake import Intake
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.model.table import DEFAULT_DATASET, ColumnType, Table
from streaming.core.records.record import Applied, Hello, Reason, ReceivedRecord, Record
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.topology import Subscription, Topology
from tests.harness.builders import csn
from tests.reference.batch import in_order

T = Table("t", ("k",), {"k": ColumnType.TEXT, "v": ColumnType.TEXT})
COLUMNS = tuple(T.columns)
RULES = Topology({"t": T}, {f"a{r}": Subscription(f"a{r}", r, frozenset("t")) for r in (1, 2)})


def fresh_state(
    hub_epoch: int = 0, ruv: Ruv = NOTHING_KNOWN, purge_ruv: Ruv = NOTHING_KNOWN
) -> HubState:
    """A hub with replicas 1 and 2, of which it has read nothing in the session in force.

    It was ready to send them everything up to its hub epoch in an earlier one.
    """
    return HubState(
        1,
        "g",
        hub_epoch=hub_epoch,
        ruvs={DEFAULT_DATASET: ruv},
        purge_ruvs={DEFAULT_DATASET: purge_ruv},
        replicas={rid: ReplicaState(rid) for rid in (1, 2)},
        agreements={
            f"a{rid}": AgreementState(f"a{rid}", rid, published=hub_epoch) for rid in (1, 2)
        },
    )


@dataclass(slots=True)
class Speaker:
    """Writes records in the order of one replica's topic."""

    rid: int = 1
    session: str = ""
    sessions: int = 0
    received: list[ReceivedRecord] = field(default_factory=list)

    def send(self, *records: Record) -> list[ReceivedRecord]:
        """Append these records in the current session; return them."""
        new = [self.quote(record, place) for place, record in enumerate(records)]
        self.received += new
        return new

    def quote(
        self, record: Record | None, ahead: int = 0, session: str | None = None
    ) -> ReceivedRecord:
        """Return a record as it would be at the end of the topic; it is not appended."""
        offset = len(self.received) + ahead
        return ReceivedRecord(self.rid, offset, 1_000 + offset, session or self.session, record)

    def hello(
        self,
        epoch: int = 0,
        covers: int = 0,
        ruv: Ruv = NOTHING_KNOWN,
        *,
        generation: int = 1,
        own: str | None = None,
        lost: bool = False,
    ) -> list[ReceivedRecord]:
        """The start of the next session."""
        self.sessions += 1
        self.session = f"{self.rid}-{self.sessions}"
        return self.send(Hello(epoch, covers, generation, ruv, own, lost=lost))

    def applied(self, epoch: int, covers: int, generation: int = 1) -> list[ReceivedRecord]:
        """A reflection."""
        return self.send(Applied(epoch, covers, generation, NOTHING_KNOWN))


def intake_of(received: Iterable[ReceivedRecord], state: HubState | None = None) -> Intake:
    """The intake of a batch that takes these."""
    intake = Intake(state or fresh_state(), RULES)
    for record in received:
        intake.take(record)
    return intake


def intake_of_session(*records: Record) -> Intake:
    """The intake of a hello and these records after it."""
    speaker = Speaker()
    return intake_of([*speaker.hello(), *speaker.send(*records)])


def numbers(intake: Intake) -> list[int]:
    """The eligible changes in judging order, by the numbers of their CSNs."""
    known = {str(csn(n, rid)): n for n in range(100) for rid in (1, 2)}
    return [known[arrived.change.csn] for one in in_order(intake.eligible) for arrived in one]


def reasons(intake: Intake) -> list[Reason]:
    """Why things are in quarantine, in order."""
    return [kept.reason for kept in intake.quarantined]
