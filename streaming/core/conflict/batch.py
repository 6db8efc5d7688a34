"""One batch of the hub, exactly and one change at a time: the model all else is tested against."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from streaming.core.conflict.counters import in_conflict
from streaming.core.conflict.function import ConflictFunction, ConflictRule
from streaming.core.conflict.judge import (
    Cause,
    Judged,
    cause_of,
    judge,
    rejected_whole,
    rejects_transaction,
)
from streaming.core.conflict.winner import Resolution, winner
from streaming.core.delivery.sending import (
    CONFLICT,
    WHOLE,
    EpochMark,
    LogEntry,
    Refresh,
    SendingView,
    is_for,
    plan,
)
from streaming.core.intake.arrival import AbortTransaction, Quarantined, Repair, kept_arrived
from streaming.core.intake.transactions import Intake, Transaction, in_order
from streaming.core.model.change import RowKey
from streaming.core.model.record import ReceivedRecord
from streaming.core.model.row import Arrived, Floor, Realign, RowState, realigned
from streaming.core.model.state import HubState, ReplicaState
from streaming.core.model.table import Table
from streaming.core.model.topology import Topology

UNKNOWN_ROW = RowState()
"""A row of which nothing is known: a tombstone of nobody."""


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """What a batch means: its entries in hub order, the rows after it, the state after it.

    `rows` holds the rows that changed; `intake` the quarantine, the events and the counts.
    """

    intake: Intake
    hub_epoch: int
    entries: tuple[LogEntry, ...]
    rows: Mapping[RowKey, RowState]
    state: HubState


def decide(
    state: HubState,
    received: Iterable[ReceivedRecord],
    rows: Mapping[RowKey, RowState],
    topology: Topology,
    view: SendingView,
    history: Mapping[str, frozenset[str]] | None = None,
    aborts: Sequence[AbortTransaction] = (),
) -> BatchDecision:
    """Decide one batch (docs/protocol.md, One batch).

    `said`: per topic in its order; topics may follow one another. `rows`: the state of every
    row, with images. `view`: the clock and the marks of committed hub epochs; the rest of it is
    set here. `aborts`: what an operator ends, before any record of the batch.
    """
    intake = Intake(state, topology, history or {})
    for abort in aborts:
        intake.end_by_hand(abort)
    for record in received:
        intake.take(record)
    hub_epoch = next_epoch(intake)
    entries, changed = judge_all(
        in_order(intake.eligible), intake.repairs, rows, hub_epoch, topology, intake.replicas
    )
    intake.quarantined += failed(entries)
    return BatchDecision(
        intake, hub_epoch, entries, changed, after(intake, hub_epoch, entries, topology, view)
    )


def next_epoch(intake: Intake, *, judged: bool = False) -> int:
    """The hub epoch of this batch: a new one if it judges, greets or refreshes."""
    rises = bool(judged or intake.eligible or intake.hellos or intake.repairs)
    return intake.state.hub_epoch + rises


def judge_all(
    transactions: Iterable[Transaction],
    repairs: Sequence[Repair],
    rows: Mapping[RowKey, RowState],
    hub_epoch: int,
    topology: Topology,
    replicas: Mapping[int, ReplicaState],
) -> tuple[tuple[LogEntry, ...], dict[RowKey, RowState]]:
    """Judge changes in hub order; repairs realign first and refresh last.

    See docs/traps.md, A repair among good changes.
    """
    bench = BatchJudge(rows, hub_epoch, topology, replicas)
    bench.realign(repairs)
    for transaction in transactions:
        bench.judge(transaction)
    bench.refresh(repairs)
    return tuple(bench.entries), bench.changed


@dataclass(slots=True)
class BatchJudge:
    """Where the transactions of one batch are judged, over an overlay of the rows.

    `settled`: what users' functions said when this batch was judged before, by CSN.
    """

    rows: Mapping[RowKey, RowState]
    hub_epoch: int
    topology: Topology
    replicas: Mapping[int, ReplicaState]
    settled: Mapping[str, Resolution] = field(default_factory=dict)
    changed: dict[RowKey, RowState] = field(default_factory=dict)
    entries: list[LogEntry] = field(default_factory=list)
    refreshed: dict[tuple[int, RowKey], Refresh] = field(default_factory=dict)
    repaired: set[tuple[int, RowKey]] = field(default_factory=set)

    def row(self, key: RowKey) -> RowState:
        """The row as it stands at this place in hub order."""
        return self.changed.get(key) or self.rows.get(key, UNKNOWN_ROW)

    def judge(self, transaction: Sequence[Arrived]) -> None:
        """Judge a transaction, whole or change by change; whose replica was wrong is refreshed."""
        if any(self._rejects_transaction(one) for one in transaction):
            causes = [self._cause(one) for one in transaction]  # before one of them is the row
            for one, cause in zip(transaction, causes, strict=True):
                self._reject_whole(one, cause)
        else:
            for one in transaction:
                self._judge_one(one)

    def _rejects_transaction(self, one: Arrived) -> bool:
        row, floors = self.row(one.change.row), self._floors(one.change.rid)
        return rejects_transaction(one, row, self._function(one), floors)

    def _cause(self, one: Arrived, *, same_epoch: bool = False) -> Cause | None:
        row, floors = self.row(one.change.row), self._floors(one.change.rid)
        return cause_of(one, row, self._function(one), floors, same_epoch=same_epoch)

    def _function(self, one: Arrived) -> ConflictFunction:
        return self.topology.tables[one.change.table].function

    def _reject_whole(self, one: Arrived, cause: Cause | None) -> None:
        same_only = cause is not None and self._cause(one, same_epoch=True) is None
        row = self.row(one.change.row)
        judged = rejected_whole(one, row, self.hub_epoch, cause, same_epoch_only=same_only)
        self._enter(judged)
        self._refresh_once(one, judged.after, WHOLE)

    def _judge_one(self, one: Arrived) -> None:
        change = one.change
        table, row = self.topology.tables[change.table], self.row(change.row)
        floors = self._floors(change.rid)
        judged = judge(
            one, row, self.hub_epoch, table, floors, self._resolve, self.topology.record_bytes
        )
        self._enter(judged)
        if judged.cause is not None:
            self._refresh_once(one, judged.after, CONFLICT)
        elif judged.failure is not None:
            self._refresh_once(one, judged.after, judged.failure.reason)
        else:
            self._refresh_overtaken(one, judged.after)

    def _resolve(self, one: Arrived, row: RowState, table: Table) -> Resolution:
        received = self.settled.get(one.change.csn)
        if received is not None and table.function.rule is ConflictRule.USER:
            return received
        return winner(one, row, table, self.topology.users.get(str(table.function)))

    def _enter(self, judged: Judged) -> None:
        self.changed[judged.arrived.change.row] = judged.after
        self.entries.append(judged)

    def realign(self, repairs: Sequence[Repair]) -> None:
        """Block what stands behind each repair's record in the topic."""
        for repair in repairs:
            realign = Realign(repair.rid, self.hub_epoch, repair.offset)
            self.changed[repair.row] = realigned(self.row(repair.row), realign)
            self.repaired.add((repair.rid, repair.row))

    def refresh(self, repairs: Sequence[Repair]) -> None:
        """Refresh each repaired row once, behind everything that was judged."""
        first: dict[tuple[int, RowKey], Repair] = {}
        for repair in sorted(repairs, key=lambda r: (r.rid, r.offset)):
            first.setdefault((repair.rid, repair.row), repair)
        for (rid, key), repair in first.items():
            self.entries.append(Refresh(rid, *key, self.row(key), repair.cause, repair.offset))

    def taken(self) -> list[LogEntry]:
        """Hand over the entries since the last call."""
        entries, self.entries = self.entries, []
        return entries

    def _refresh_once(self, one: Arrived, row: RowState, cause: str) -> None:
        """Send the row as it stands, unless the same version just went to the same replica."""
        rid, key = one.change.rid, one.change.row
        refresh = Refresh(rid, *key, row, cause)
        last = self.refreshed.get((rid, key))
        if last is None or last.row.csn != row.csn or last.cause != cause:
            self.entries.append(refresh)
            self.refreshed[rid, key] = refresh

    def _refresh_overtaken(self, arrived: Arrived, row: RowState) -> None:
        """Send the row again to its author, whom an earlier refresh gave what it was before.

        That happens when the change waited while a record behind it in the topic had the row
        repaired, or was a hello that had lost it. The verdict stands, so the cut of the input
        decides nothing.
        """
        rid, key = arrived.change.rid, arrived.change.row
        floors = self._floors(rid)
        if not row.realign and not floors:
            return
        behind = [
            r.offset
            for r in row.realign
            if r.rid == rid
            and r.offset > arrived.offset
            and (r.epoch < self.hub_epoch or (rid, key) not in self.repaired)
        ]
        behind += [
            f.offset for f in floors if f.epoch < self.hub_epoch and f.offset > arrived.offset
        ]
        if behind:
            realign = Realign(rid, self.hub_epoch, min(behind))
            self.changed[key] = realigned(row, realign)
            self.entries.append(Refresh(rid, *key, row, "overtaken", realign.offset))

    def _floors(self, rid: int) -> tuple[Floor, ...]:
        author = self.replicas.get(rid)  # None: the hub, which loses nothing
        return author.floors if author else ()


def failed(entries: Iterable[LogEntry]) -> list[Quarantined]:
    """The changes that failed when they were judged, for quarantine."""
    return [
        kept_arrived(entry.arrived, entry.failure.reason, entry.failure.detail)
        for entry in entries
        if isinstance(entry, Judged) and entry.failure is not None
    ]


def after(
    intake: Intake,
    hub_epoch: int,
    entries: Sequence[LogEntry],
    topology: Topology,
    view: SendingView,
) -> HubState:
    """The state after a batch: positions, lists and what each agreement is sent."""
    has_items = {
        name: any(
            is_for(
                entry,
                a.consumer,
                topology.subscriptions[name].tables,
                a.sent_ruv,
                intake.replicas[a.consumer].floors,
            )
            for entry in entries
        )
        for name, a in intake.agreements.items()
    }
    return settled(intake, hub_epoch, len(entries), has_items, view, in_conflict(entries))


def settled(
    intake: Intake,
    hub_epoch: int,
    entries: int,
    has_items: Mapping[str, bool],
    view: SendingView,
    conflicted: Collection[int] = (),
) -> HubState:
    """The state after a batch, given which agreements its own hub epoch has something for.

    `conflicted`: the replicas of which a change was in conflict.
    """
    previous, ruvs, topology = intake.state.hub_epoch, intake.ruvs, intake.topology
    own = [EpochMark(hub_epoch, entries, ruvs)] if hub_epoch > previous else []
    seen = replace(
        view,
        previous=previous,
        hub_epoch=hub_epoch,
        ruvs=ruvs,
        marks=lambda covered: [*view.marks(covered), *own],
    )
    plans = {
        name: plan(
            agreement,
            seen,
            topology.dataset_at(agreement.consumer),
            has_items=has_items[name],
            page_items=topology.page_items,
            covers_interval_ms=topology.covers_interval_ms,
        )
        for name, agreement in intake.agreements.items()
    }
    intake.open.forget(ruvs.values())
    return replace(
        intake.state,
        batch=intake.state.batch + 1,
        hub_epoch=hub_epoch,
        ruvs=ruvs,
        replicas={
            rid: _stability(replica, hub_epoch, conflicted=rid in conflicted)
            for rid, replica in intake.replicas.items()
        },
        agreements={name: one.agreement for name, one in plans.items()},
        to_send={name: one.to_send for name, one in plans.items() if one.to_send is not None},
        open=intake.open,
    )


def _stability(replica: ReplicaState, hub_epoch: int, *, conflicted: bool) -> ReplicaState:
    """Note the last conflict; stable is what was reflected when no conflict was open any more."""
    if conflicted:
        return replace(replica, last_conflict_epoch=hub_epoch)
    if replica.handles_conflict or replica.mre == replica.last_stable_epoch:
        return replica
    return replace(replica, last_stable_epoch=replica.mre)
