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
    PAGE,
    WHOLE,
    EpochMark,
    LogEntry,
    RangeRefresh,
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
from streaming.core.intake.transactions import Intake, in_order
from streaming.core.model.change import RowKey
from streaming.core.model.command import ResyncOrder
from streaming.core.model.record import ReceivedRecord
from streaming.core.model.refusal import Refusal, Refusals
from streaming.core.model.row import Arrived, Floor, Realign, RowState, realigned
from streaming.core.model.state import AgreementState, HubState, ReplicaState
from streaming.core.model.table import Table
from streaming.core.model.topology import Topology
from streaming.core.tracking.paging import PageDecision
from streaming.core.tracking.ranges import KeyRange, RangeRealign, key_order, with_range
from streaming.core.tracking.resync import PageRows, ResyncPage, is_sent

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
    resyncs: Sequence[ResyncOrder] = (),
    pauses: Sequence[str] = (),
    pages: Sequence[ResyncPage] = (),
) -> BatchDecision:
    """Decide one batch (docs/protocol.md, One batch).

    `received`: the records, those of one topic in its order; the topics may be concatenated.
    `rows`: the state of every row, with images. `view`: the clock and the marks of committed hub
    epochs; its other fields are set here. `aborts`: the transactions that an operator aborts
    before any record of the batch is processed; `retries`: the refused rows that he sends again.
    `losses`: the replicas of which input is lost; `recovers`: the rids of those whose lost input he
    gives up; `retires`: rid -> the offset before which he takes that replica out for good;
    `resumes`: the agreements that he resumes; `resyncs`: those that he brings what they lack;
    `pauses`: those that he pauses. `pages`: the pages of resyncs that the batch sends.
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
    for order in resyncs:
        intake.resync(order)
    for name in pauses:
        intake.pause(name)
    intake.send_due()
    for record in received:
        intake.take(record)
    intake.leave_unread(KEPT_BEHIND_STOP)
    pages = still_due(intake, pages)
    hub_epoch = next_epoch(intake, pages)
    batch_judge = BatchJudge(
        rows,
        hub_epoch,
        topology,
        intake.replicas,
        refusals=intake.refused.for_judging(),
        ranges=state.ranges,
    )
    batch_judge.realign(intake.repairs)
    for transaction in in_order(intake.eligible):
        batch_judge.judge(transaction)
    batch_judge.refresh(intake.repairs)
    for page in pages:
        consumer = state.agreements[page.agreement].consumer
        batch_judge.send_tracked(page, consumer)
        batch_judge.send_ranges(page, consumer)
    entries, changed = tuple(batch_judge.entries), batch_judge.changed
    intake.quarantined += failed(entries)
    settle_refusals(intake, changed, lambda _: {**rows, **changed}, pages, hub_epoch)
    return BatchDecision(
        intake,
        hub_epoch,
        entries,
        changed,
        after(intake, hub_epoch, entries, topology, view, pages),
    )


def next_epoch(intake: Intake, pages: Sequence[ResyncPage] = (), *, judged: bool = False) -> int:
    """Return the hub epoch of this batch: a new one if it judges, answers a hello or refreshes."""
    rises = bool(judged or intake.eligible or intake.hellos or intake.repairs or pages)
    return intake.state.hub_epoch + rises


def still_due(intake: Intake, pages: Iterable[ResyncPage]) -> list[ResyncPage]:
    """Return the planned pages whose resync goes on; a record of the batch may have ended it."""
    return [page for page in pages if intake.agreements[page.agreement].takes_page(intake.state)]


@dataclass(slots=True)
class BatchJudge:
    """Judges the transactions of one batch and keeps the changed rows in an overlay.

    `earlier_resolutions`: CSN -> what the user's function returned when this batch was judged
    before. `refusals`: the rows that replicas refused, as taken with this batch. `ranges`: the
    ranges of keys that earlier batches sent; each realigns its keys.
    """

    rows: Mapping[RowKey, RowState]
    hub_epoch: int
    topology: Topology
    replicas: Mapping[int, ReplicaState]
    earlier_resolutions: Mapping[str, Resolution] = field(default_factory=dict)
    refusals: Refusals = field(default_factory=dict)
    ranges: Sequence[RangeRealign] = ()
    changed: dict[RowKey, RowState] = field(default_factory=dict)
    entries: list[LogEntry] = field(default_factory=list)
    refreshed: dict[tuple[int, RowKey], Refresh] = field(default_factory=dict)
    repaired: set[tuple[int, RowKey]] = field(default_factory=set)

    def row(self, key: RowKey) -> RowState:
        """Return the row as it is at this position in hub order."""
        known = self.changed.get(key)
        if known is not None:
            return known
        row = self.rows.get(key, UNKNOWN_ROW)
        return self._in_ranges(key, row) if self.ranges else row

    def _in_ranges(self, key: RowKey, row: RowState) -> RowState:
        """Return the row with the realigns of the ranges that hold it."""
        table = self.topology.tables.get(key[0])
        here = [one for one in self.ranges if one.range.table == key[0]] if table else []
        order = key_order(table) if here and table else None
        for one in here:
            if order is not None and one.range.holds(key[1], order):
                row = realigned(row, one.as_realign())
        return row

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

    def send_tracked(self, page: ResyncPage, consumer: int) -> None:
        """Refresh the tracked rows of a page, as they stand now."""
        for one in page.parts:
            for key, tracked_epoch in one.tracked:
                self._send_tracked((one.part.table, key), tracked_epoch, consumer)

    def send_ranges(self, page: ResyncPage, consumer: int) -> None:
        """Enter the ranges of a page with all rows in them, as they stand now."""
        whole = (one for one in page.parts if one.kind.is_whole)
        self.entries.extend(self._range(one, consumer) for one in whole)

    def _send_tracked(self, key: RowKey, tracked_epoch: int, consumer: int) -> None:
        """Refresh a tracked row, unless it was written behind the end of the resync."""
        row = self.row(key)
        if is_sent(tracked_epoch, row) is PageDecision.LEAVE_TO_LIVE:
            return
        self.changed[key] = realigned(row, Realign(consumer, self.hub_epoch))
        self.entries.append(Refresh(consumer, *key, row, PAGE))

    def _range(self, one: PageRows, consumer: int) -> RangeRefresh:
        """The rows that stand in a range of keys, in the order of keys."""
        table, after, upto = one.part
        order, keys = key_order(self.topology.tables[table]), KeyRange(table, after, upto)
        names = {name for of, name in (*self.rows, *self.changed) if of == table}
        inside = sorted((name for name in names if keys.holds(name, order)), key=order)
        rows = ((name, self.row((table, name))) for name in inside)
        return RangeRefresh(consumer, keys, tuple((name, row) for name, row in rows if row.exists))

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
    pages: Sequence[ResyncPage],
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
        if a.is_sent_to
    }
    conflicted = in_conflict(entries)
    return state_after(intake, hub_epoch, len(entries), has_items, view, conflicted, pages)


def settle_refusals(
    intake: Intake,
    changed: Collection[RowKey],
    rows_of: Callable[[list[RowKey]], RowStates],
    pages: Iterable[ResyncPage],
    hub_epoch: int,
) -> None:
    """Note which refused rows are sent again, and close those that their replica has by now.

    `changed`: the rows that the batch changed. `rows_of`: rows as they are after it. `pages`: those
    that it sends.
    """
    for page in pages:
        consumer = intake.agreements[page.agreement].consumer
        for one in _ranges(page):
            order = key_order(intake.topology.tables[one.table])
            intake.refused.send_range(consumer, one, order, hub_epoch)
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
    pages: Sequence[ResyncPage] = (),
) -> HubState:
    """Return the state after a batch: positions, lists and what each agreement is sent.

    `entries`: how many changelog rows the batch has. `has_items`: agreement -> whether some of
    them are sent to its consumer; absent: nothing is sent to it. `conflicted`: the replicas that
    wrote a change in conflict. `pages`: those of resyncs that the batch sends.
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
    sent_pages = {page.agreement: page for page in pages}
    agreements = {
        name: _with_page(one.begun(hub_epoch), sent_pages.get(name), hub_epoch)
        for name, one in intake.agreements.items()
    }
    ranges = {name: _ranges(page) for name, page in sent_pages.items()}
    plans = {
        name: plan(
            agreement.unless_silent(view.clock_ms, topology.ack_timeout_ms),
            seen,
            topology.dataset_at(agreement.consumer),
            has_items=has_items.get(name, False) or name in sent_pages,
            page_items=topology.page_items,
            covers_interval_ms=topology.covers_interval_ms,
            ranges=ranges.get(name, ()),
        )
        for name, agreement in agreements.items()
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
        ranges=_with_ranges(intake, ranges, hub_epoch),
    )


def _with_page(
    agreement: AgreementState, page: ResyncPage | None, hub_epoch: int
) -> AgreementState:
    """The agreement once a page of its resync is committed."""
    if page is None or agreement.resync is None:
        return agreement
    return replace(agreement, resync=agreement.resync.page_sent(page, hub_epoch))


def _ranges(page: ResyncPage) -> tuple[KeyRange, ...]:
    return tuple(KeyRange(*one.part) for one in page.parts if one.kind.is_whole)


def _with_ranges(
    intake: Intake, sent: Mapping[str, Sequence[KeyRange]], hub_epoch: int
) -> tuple[RangeRealign, ...]:
    """The ranges that realign their keys, with those that this batch sends."""
    known = intake.state.ranges
    for name, ranges in sent.items():
        rid = intake.agreements[name].consumer
        for one in ranges:
            known = with_range(known, RangeRealign(one, rid, hub_epoch))
    return known


def _stability(replica: ReplicaState, hub_epoch: int, *, conflicted: bool) -> ReplicaState:
    """Record the last conflict, or the epoch that was reflected after all conflicts were."""
    if conflicted:
        return replace(replica, last_conflict_epoch=hub_epoch)
    if replica.handles_conflict or replica.mre == replica.last_stable_epoch:
        return replica
    return replace(replica, last_stable_epoch=replica.mre)
