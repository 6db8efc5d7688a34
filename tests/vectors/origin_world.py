"""A hub and its replicas in memory: values only, as the origin systems' cases need them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from streaming.core.batch.sending import EpochMark, LogEntry, RangeRefresh, SendingView
from streaming.core.conflict.judge import Judged
from streaming.core.model.change import NOBODY, Change, Op, RowKey
from streaming.core.model.csn import Generator
from streaming.core.model.row import RowState
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.model.table import Table
from streaming.core.records.arrival import Quarantined
from streaming.core.records.record import Applied, Commit, Hello, Item, ReceivedRecord, Record
from streaming.core.state.agreement_state import AgreementState, SendRange
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.topology import Subscription, Topology
from tests.reference.batch import decide
from tests.reference.sending import is_for, item

GENERATION = 1
CLOCK_S = 1_700_000_000
"""The clock of the world stands still: nothing here depends on time."""

Image = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Batch:
    """What the hub sends to one consumer for one micro-batch."""

    covers: int
    ruv: Ruv
    items: tuple[Item, ...]


@dataclass(slots=True)
class Hub:
    """The pure hub: every call of `take` is one micro-batch, all of it published at once."""

    topology: Topology
    state: HubState
    rows: dict[RowKey, RowState] = field(default_factory=dict)
    log: list[tuple[int, LogEntry]] = field(default_factory=list)
    marks: list[EpochMark] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)

    def take(self, said: Iterable[ReceivedRecord]) -> dict[int, Batch]:
        """Decide a micro-batch; what is sent, by consumer."""
        view = SendingView(
            previous=0,
            hub_epoch=0,
            ruvs={},
            clock_ms=CLOCK_S * 1000,
            nudged=True,
            marks=lambda after, to: [m for m in self.marks if after < m.hub_epoch <= to],
        )
        decision = decide(self.state, said, self.rows, self.topology, view)
        if decision.hub_epoch > self.state.hub_epoch:
            mark = EpochMark(decision.hub_epoch, len(decision.entries), decision.state.ruvs)
            self.marks.append(mark)
        self.log += [(decision.hub_epoch, entry) for entry in decision.entries]
        self.rows.update(decision.rows)
        self.quarantined += decision.intake.quarantined
        self.state = decision.state
        sent = [(self.state.agreements[name], r) for name, r in self.state.to_send.items()]
        return {agreement.consumer: self._batch(agreement, r) for agreement, r in sent}

    @property
    def judged(self) -> list[Judged]:
        """Every change that was judged, in hub order."""
        return [entry for _, entry in self.log if isinstance(entry, Judged)]

    def _batch(self, sent: AgreementState, to_send: SendRange) -> Batch:
        tables = self.topology.subscriptions[sent.name].tables
        items = tuple(
            item(entry)
            for epoch, entry in self.log
            if to_send.after < epoch <= to_send.to
            and not isinstance(entry, RangeRefresh)
            and is_for(entry, sent.consumer, tables, to_send.known)
        )
        return Batch(sent.sent_covers, sent.sent_ruv, items)


@dataclass(slots=True)
class Replica:
    """A database and its agent; `outbox` is its topic behind what the hub has read.

    `written`: CSN -> the hub epoch up to which it had applied everything when it wrote that.
    """

    rid: int
    rows: dict[RowKey, str] = field(default_factory=dict)
    epoch: int = 0
    covers: int = 0
    ruv: Ruv = NOTHING_KNOWN
    offset: int = 0
    outbox: list[ReceivedRecord] = field(default_factory=list)
    inbox: list[Batch] = field(default_factory=list)
    written: dict[str, int] = field(default_factory=dict)
    generator: Generator = field(init=False)

    def __post_init__(self) -> None:
        """Say hello: a first session of a replica that has nothing yet."""
        self.generator = Generator(self.rid)
        self._say(Hello(0, 0, GENERATION, NOTHING_KNOWN, own=None, lost=False))
        self.epoch = 1

    def write(self, changes: Iterable[tuple[Op, RowKey, Image | None]]) -> list[str | None]:
        """Commit one transaction; an update or delete of a row that is not here does nothing.

        Gives the CSN of each change, None where nothing was done.
        """
        all_ = [self._apply_local(*one) for one in changes]
        done = [change for change in all_ if change is not None]
        primary = done[0].csn if len(done) > 1 else None
        for change in done:
            self._say(change._replace(prim_csn=primary))
            self.written[change.csn] = self.covers
        if primary is not None:
            self._say(Commit(primary))
        return [change and change.csn for change in all_]

    def receive(self) -> None:
        """Apply all that was sent, in its order, and tell the hub: a new epoch."""
        for batch in self.inbox:
            for each in batch.items:
                self._apply(each)
            self.covers, self.ruv = batch.covers, batch.ruv
        self.inbox.clear()
        self._say(Applied(self.epoch, self.covers, GENERATION, self.ruv))
        self.epoch += 1

    def _apply_local(self, op: Op, row: RowKey, values: Image | None) -> Change | None:
        before = self.rows.get(row)
        if before is None and op is not Op.INSERT:
            return None
        image = {**json.loads(row[1]), **(json.loads(before) if before else {}), **(values or {})}
        after = None if op is Op.DELETE else canonical(image)
        if after is None:
            del self.rows[row]
        else:
            self.rows[row] = after
        csn, self.generator = self.generator.next(CLOCK_S)
        return Change(csn, self.rid, self.epoch, *row, op, after, before)

    def _apply(self, each: Item) -> None:
        row = each.table, each.key
        if each.after is None:
            self.rows.pop(row, None)
        else:
            self.rows[row] = each.after
        if each.csn is not None:
            self.generator = self.generator.seen(each.csn, CLOCK_S)

    def _say(self, record: Record) -> None:
        self.offset += 1
        said = ReceivedRecord(self.rid, self.offset, CLOCK_S * 1000, f"session-{self.rid}", record)
        self.outbox.append(said)


@dataclass(slots=True)
class World:
    """A hub and replicas that all hold the same rows, which nobody wrote."""

    hub: Hub
    replicas: Mapping[int, Replica]

    @classmethod
    def start(
        cls, rids: Iterable[int], tables: Mapping[str, Table], rows: Mapping[RowKey, str]
    ) -> "World":
        """Rows reflected everywhere: author nobody, epoch 0."""
        rids = tuple(rids)
        names = {rid: f"to-{rid}" for rid in rids}
        seen = frozenset(tables)
        hub = Hub(
            Topology(tables, {name: Subscription(name, rid, seen) for rid, name in names.items()}),
            HubState(
                GENERATION,
                "",
                replicas={rid: ReplicaState(rid) for rid in rids},
                agreements={name: AgreementState(name, rid) for rid, name in names.items()},
            ),
            {
                row: RowState(NOBODY, 0, None, exists=True, image=image)
                for row, image in rows.items()
            },
        )
        world = cls(hub, {rid: Replica(rid, dict(rows)) for rid in rids})
        for rid in rids:
            world.publish(rid)
        return world

    def publish(self, rid: int) -> None:
        """Let the hub read all that this replica has said, as one micro-batch."""
        replica = self.replicas[rid]
        said, replica.outbox = replica.outbox, []
        for consumer, batch in self.hub.take(said).items():
            self.replicas[consumer].inbox.append(batch)

    def deliver(self, rid: int) -> None:
        """Let this replica apply all that the hub has sent it; its answer waits in its topic."""
        self.replicas[rid].receive()


def canonical(values: Image) -> str:
    """Canonical JSON text: no spaces, columns in schema order, which here is that of names."""
    return json.dumps(dict(sorted(values.items())), separators=(",", ":"), ensure_ascii=False)
