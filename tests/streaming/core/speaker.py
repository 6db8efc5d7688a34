"""A replica's topic in a few words, and the hub state before the first batch."""

from dataclasses import dataclass, field

from streaming.core.change import Change, Op
from streaming.core.record import Applied, Hello, Record, Said
from streaming.core.rules import Rules, Subscription
from streaming.core.ruv import NOTHING_KNOWN, Ruv
from streaming.core.state import AgreementState, HubState, ReplicaState
from streaming.core.table import ColumnType, Table
from tests.streaming.core.logs import csn

T = Table("t", ("k",), {"k": ColumnType.TEXT, "v": ColumnType.TEXT})
COLUMNS = tuple(T.columns)
RULES = Rules({"t": T}, {f"a{r}": Subscription(f"a{r}", r, frozenset("t")) for r in (1, 2)})


def fresh_state(**changes: object) -> HubState:
    """A hub that knows of replicas 1 and 2 and has heard of neither."""
    state = HubState(
        1,
        "g",
        replicas={rid: ReplicaState(rid) for rid in (1, 2)},
        agreements={f"a{rid}": AgreementState(f"a{rid}", rid) for rid in (1, 2)},
    )
    for name, value in changes.items():
        state = _with(state, name, value)
    return state


def _with(state: HubState, name: str, value: object) -> HubState:
    return HubState(**{**{n: getattr(state, n) for n in HubState.__slots__}, name: value})


def change(
    number: int,
    key: str = "k",
    value: str | None = "v",
    *,
    rid: int = 1,
    epoch: int = 1,
    tx: int | None = None,
    opno: int | None = None,
) -> Change:
    """A change with the replica's CSN of this number; `tx`: the number of its prim_csn."""
    op = Op.DELETE if value is None else Op.UPDATE
    after = None if value is None else f'{{"k":"{key}","v":"{value}"}}'
    prim = None if tx is None else csn(tx, rid)
    text = f'{{"k":"{key}"}}'
    return Change(csn(number, rid), rid, epoch, "t", text, op, after, prim_csn=prim, opno=opno)


@dataclass(slots=True)
class Speaker:
    """Says records in the order of one replica's topic."""

    rid: int = 1
    session: str = ""
    sessions: int = 0
    said: list[Said] = field(default_factory=list)

    def say(self, *records: Record) -> list[Said]:
        """These records, said one after the other in the session in force."""
        new = [self.quote(record, place) for place, record in enumerate(records)]
        self.said += new
        return new

    def quote(self, record: Record | None, ahead: int = 0, session: str | None = None) -> Said:
        """What a record looks like at the end of the topic; it is not said."""
        offset = len(self.said) + ahead
        return Said(self.rid, offset, 1_000 + offset, session or self.session, record)

    def hello(
        self, epoch: int = 0, covers: int = 0, ruv: Ruv = NOTHING_KNOWN, *, lost: bool = False
    ) -> list[Said]:
        """The start of the next session."""
        self.sessions += 1
        self.session = f"{self.rid}-{self.sessions}"
        return self.say(Hello(epoch, covers, 1, ruv, None, lost=lost))

    def applied(self, epoch: int, covers: int) -> list[Said]:
        """A reflection."""
        return self.say(Applied(epoch, covers, 1, NOTHING_KNOWN))
