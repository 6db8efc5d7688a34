"""Decide one batch, one change at a time: the reference that the vectorized stages must match."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from streaming.core.conflict.counters import in_conflict
from streaming.core.conflict.function import ConflictFunction, ConflictRule
from streaming.core.conflict.judge import (
    Cause,
    Judged,
    cause_of,
    judge,
    rejected_whole,
    rejects_transaction,
    unconfigured,
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
from streaming.core.intake.arrival import (
    AbortTransaction,
    Quarantined,
    Repair,
    quarantined_change,
)
from streaming.core.intake.input_lost import InputLoss
from streaming.core.intake.refused_rows import NONE_REFUSED
from streaming.core.intake.stopped import KEPT_BEHIND_STOP
from streaming.core.intake.transactions import Intake, Transaction, in_order
from streaming.core.model.change import RowKey
from streaming.core.model.record import ReceivedRecord
from streaming.core.model.refusal import Refusal, Refusals
from streaming.core.model.row import Arrived, Floor, Realign, RowState, realigned
from streaming.core.model.state import HubState, ReplicaState
from streaming.core.model.table import Table
from streaming.core.model.topology import Topology

RowStates = Mapping[RowKey, RowState]

UNKNOWN_ROW = RowState()
"""The state of a row that no replica has written: a tombstone without an author."""


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """The outcome of a batch: its entries in hub order, the rows and the state after it.

    `rows` holds only the rows that changed. `intake` holds the quarantine, the events and the
    counts.
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
    retries: Sequence[str] = (),
    losses: Sequence[InputLoss] = (),
    recovers: Sequence[int] = (),
    retires: Mapping[int, int] = MappingProxyType({}),
    resumes: Sequence[str] = (),
) -> BatchDecision:
    """Decide one batch (docs/protocol.md, One batch).

    `received`: the records, those of one topic in its order; the topics may be concatenated.
    `rows`: the state of every row, with images. `view`: the clock and the marks of committed hub
    epochs; its other fields are set here. `aborts`: the transactions that an operator aborts
    before any record of the batch is processed; `retries`: the refused rows that he sends again.
    `losses`: the replicas of which input is lost; `recovers`: the rids of those whose lost input he
    gives up; `retires`: rid -> the offset before which he takes that replica out for good;
    `resumes`: the agreements that he resumes.
    """
    intake = Intake(state, topology, history or {}, at_ms=view.clock_ms)
    for loss in losses:
        intake.lose_input(loss)
    for rid in recovers:
        intake.recover(rid)
    for rid, offset in retires.items():
        intake.retire(rid, offset)
    for abort in aborts:
        intake.end_by_hand(abort)
    for retry in retries:
        intake.send_again(retry)
    for name in resumes:
        intake.resume(name)
    intake.send_due()
    for record in received:
        intake.take(record)
    intake.leave_unread(KEPT_BEHIND_STOP)
    hub_epoch = next_epoch(intake)
    refusals = intake.refused.for_judging()
    entries, changed = judge_all(
        in_order(intake.eligible),
        intake.repairs,
        rows,
        hub_epoch,
        topology,
        intake.replicas,
        refusals,
    )
    intake.quarantined += failed(entries)
    settle_refusals(intake, changed, lambda _: {**rows, **changed})
    return BatchDecision(
        intake, hub_epoch, entries, changed, after(intake, hub_epoch, entries, topology, view)
    )


def next_epoch(intake: Intake, *, judged: bool = False) -> int:
    """Return the hub epoch of this batch: a new one if it judges, answers a hello or refreshes."""
    rises = bool(judged or intake.eligible or intake.hellos or intake.repairs)
    return intake.state.hub_epoch + rises


def judge_all(
    transactions: Iterable[Transaction],
    repairs: Sequence[Repair],
    rows: Mapping[RowKey, RowState],
    hub_epoch: int,
    topology: Topology,
    replicas: Mapping[int, ReplicaState],
    refusals: Refusals = MappingProxyType({}),
) -> tuple[tuple[LogEntry, ...], dict[RowKey, RowState]]:
    """Judge changes in hub order. Repairs realign their rows first and refresh them last.

    See docs/traps.md, A repair among good changes.
    """
    batch_judge = BatchJudge(rows, hub_epoch, topology, replicas, refusals=refusals)
    batch_judge.realign(repairs)
    for transaction in transactions:
        batch_judge.judge(transaction)
    batch_judge.refresh(repairs)
    return tuple(batch_judge.entries), batch_judge.changed


@dataclass(slots=True)
class BatchJudge:
    """Judges the transactions of one batch and keeps the changed rows in an overlay.

    `earlier_resolutions`: CSN -> what the user's function returned when this batch was judged
    before. `refusals`: the rows that replicas refused, as taken with this batch.
    """

    rows: Mapping[RowKey, RowState]
    hub_epoch: int
    topology: Topology
    replicas: Mapping[int, ReplicaState]
    earlier_resolutions: Mapping[str, Resolution] = field(default_factory=dict)
    refusals: Refusals = field(default_factory=dict)
    changed: dict[RowKey, RowState] = field(default_factory=dict)
    entries: list[LogEntry] = field(default_factory=list)
    refreshed: dict[tuple[int, RowKey], Refresh] = field(default_factory=dict)
    repaired: set[tuple[int, RowKey]] = field(default_factory=set)

    def row(self, key: RowKey) -> RowState:
        """Return the row as it is at this position in hub order."""
        return self.changed.get(key) or self.rows.get(key, UNKNOWN_ROW)

    def judge(self, transaction: Sequence[Arrived]) -> None:
        """Judge a transaction, whole or change by change, and refresh the rows that it lost."""
        known = [one for one in transaction if one.change.table in self.topology.tables]
        is_rejected = any(self._rejects_transaction(one) for one in known)
        # the causes before a change overwrites its row
        causes = {one.change.csn: self._cause(one) for one in known} if is_rejected else {}
        for one in transaction:
            if one.change.table not in self.topology.tables:
                self._enter(unconfigured(one, self.row(one.change.row)))
            elif is_rejected:
                self._reject_whole(one, causes[one.change.csn])
            else:
                self._judge_one(one)

    def _rejects_transaction(self, one: Arrived) -> bool:
        row, floors = self.row(one.change.row), self._floors(one.change.rid)
        return rejects_transaction(one, row, self._function(one), floors, self._refusal(one))

    def _cause(self, one: Arrived, *, same_epoch: bool = False) -> Cause | None:
        row, floors = self.row(one.change.row), self._floors(one.change.rid)
        refusal, function = self._refusal(one), self._function(one)
        return cause_of(one, row, function, floors, refusal, same_epoch=same_epoch)

    def _function(self, one: Arrived) -> ConflictFunction:
        return self.topology.tables[one.change.table].function

    def _reject_whole(self, one: Arrived, cause: Cause | None) -> None:
        same_only = cause is not None and self._cause(one, same_epoch=True) is None
        row, floors = self.row(one.change.row), self._floors(one.change.rid)
        judged = rejected_whole(one, row, self.hub_epoch, cause, floors, same_epoch_only=same_only)
        self._enter(judged)
        self._refresh_once(one, judged.after, WHOLE)

    def _judge_one(self, one: Arrived) -> None:
        change = one.change
        table, row = self.topology.tables[change.table], self.row(change.row)
        floors = self._floors(change.rid)
        judged = judge(
            one,
            row,
            self.hub_epoch,
            table,
            floors,
            self._resolve,
            self.topology.record_bytes,
            refusal=self._refusal(one),
        )
        self._enter(judged)
        if judged.cause is not None:
            self._refresh_once(one, judged.after, CONFLICT)
        elif judged.failure is not None:
            self._refresh_once(one, judged.after, judged.failure.reason)
        else:
            self._refresh_overtaken(one, judged.after)

    def _resolve(self, one: Arrived, row: RowState, table: Table) -> Resolution:
        earlier = self.earlier_resolutions.get(one.change.csn)
        if earlier is not None and table.function.rule is ConflictRule.USER:
            return earlier
        return winner(one, row, table, self.topology.users.get(str(table.function)))

    def _enter(self, judged: Judged) -> None:
        self.changed[judged.arrived.change.row] = judged.after
        self.entries.append(judged)

    def realign(self, repairs: Sequence[Repair]) -> None:
        """Block the changes that follow each repair's record in the topic."""
        for repair in repairs:
            realign = Realign(repair.rid, self.hub_epoch, repair.offset)
            self.changed[repair.row] = realigned(self.row(repair.row), realign)
            self.repaired.add((repair.rid, repair.row))

    def refresh(self, repairs: Sequence[Repair]) -> None:
        """Refresh each repaired row once, after everything that was judged."""
        first: dict[tuple[int, RowKey], Repair] = {}
        for repair in sorted(repairs, key=lambda r: (r.rid, r.offset)):
            first.setdefault((repair.rid, repair.row), repair)
        for (rid, key), repair in first.items():
            self.entries.append(Refresh(rid, *key, self.row(key), repair.cause, repair.offset))

    def take_entries(self) -> list[LogEntry]:
        """Return the entries since the last call, and forget them."""
        entries, self.entries = self.entries, []
        return entries

    def _refresh_once(self, one: Arrived, row: RowState, cause: str) -> None:
        """Send the row as it is, unless the same version was just sent to the same replica."""
        rid, key = one.change.rid, one.change.row
        refresh = Refresh(rid, *key, row, cause)
        last = self.refreshed.get((rid, key))
        if last is None or last.row.csn != row.csn or last.cause != cause:
            self.entries.append(refresh)
            self.refreshed[rid, key] = refresh

    def _refresh_overtaken(self, arrived: Arrived, row: RowState) -> None:
        """Send the row again to its author, which an earlier refresh set back to an older version.

        This happens when the change waited while a later record of the topic caused a repair of
        the row, or was a hello that reported the change as lost. The verdict stays, so it does not
        depend on how the input is cut into batches.
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

    def _refusal(self, one: Arrived) -> Refusal | None:
        return self.refusals.get(one.change.rid, NONE_REFUSED).get(one.change.row)

    def _floors(self, rid: int) -> tuple[Floor, ...]:
        author = self.replicas.get(rid)  # None: the hub itself, which loses no state
        return author.floors if author else ()


def failed(entries: Iterable[LogEntry]) -> list[Quarantined]:
    """Return the changes whose judging failed, for quarantine."""
    return [
        quarantined_change(entry.arrived, entry.failure.reason, entry.failure.detail)
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
    """Return the state after a batch, from its entries."""
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
        if not a.is_stopped
    }
    return state_after(intake, hub_epoch, len(entries), has_items, view, in_conflict(entries))


def settle_refusals(
    intake: Intake, changed: Collection[RowKey], rows_of: Callable[[list[RowKey]], RowStates]
) -> None:
    """Note which refused rows are sent again, and close those that their replica has by now.

    `changed`: the rows that the batch changed. `rows_of`: rows as they are after it.
    """
    found = intake.refused.to_settle(changed)
    if found:
        acked = {one.consumer: one.acked_covers for one in intake.agreements.values()}
        rows = rows_of([one.row for one in found])
        intake.refused.settle(found, rows, intake.topology.sees, acked)


def state_after(
    intake: Intake,
    hub_epoch: int,
    entries: int,
    has_items: Mapping[str, bool],
    view: SendingView,
    conflicted: Collection[int] = (),
) -> HubState:
    """Return the state after a batch: positions, lists and what each agreement is sent.

    `entries`: how many changelog rows the batch has. `has_items`: agreement -> whether some of
    them are sent to its consumer; absent: it is stopped. `conflicted`: the replicas that wrote a
    change in conflict.
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
            has_items=has_items.get(name, False),
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
            for rid, replica in intake.replica_states().items()
        },
        agreements={name: one.agreement for name, one in plans.items()},
        to_send={name: one.to_send for name, one in plans.items() if one.to_send is not None},
        open=intake.open,
        refusals=intake.refused.after,
    )


def _stability(replica: ReplicaState, hub_epoch: int, *, conflicted: bool) -> ReplicaState:
    """Record the last conflict, or the epoch that was reflected after all conflicts were."""
    if conflicted:
        return replace(replica, last_conflict_epoch=hub_epoch)
    if replica.handles_conflict or replica.mre == replica.last_stable_epoch:
        return replica
    return replace(replica, last_stable_epoch=replica.mre)
