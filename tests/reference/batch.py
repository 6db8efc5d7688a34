"""The measure of the hub's batch (hub/batch/pipeline.py): it is decided, one change at a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from streaming.core.batch.after import TablesAfter, resolve_refusals, state_after
from streaming.core.batch.batch_judge import BatchJudge
from streaming.core.batch.counters import in_conflict
from streaming.core.batch.inputs import covers_before, failed, listed_in, next_epoch, still_due
from streaming.core.batch.sending import LogEntry, SendingView
from streaming.core.intake import orders
from streaming.core.intake.input_lost import InputLoss
from streaming.core.intake.intake import Intake
from streaming.core.intake.stopped import KEPT_BEHIND_STOP
from streaming.core.intake.transactions import Transaction
from streaming.core.model.change import RowKey
from streaming.core.model.command import ReadmitOrder, ResyncOrder, RowOrder, TablesOrder
from streaming.core.model.row import Arrived, RowState
from streaming.core.records.arrival import AbortTransaction
from streaming.core.records.record import ReceivedRecord
from streaming.core.retention.purge import Purge
from streaming.core.state.hub_state import HubState
from streaming.core.state.topology import JudgingOrder, Topology
from streaming.core.tracking.resync import ResyncPage
from tests.reference.ranges import send_ranges
from tests.reference.sending import is_for


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
    readmits: Sequence[ReadmitOrder] = (),
    resumes: Sequence[str] = (),
    resyncs: Sequence[ResyncOrder] = (),
    pauses: Sequence[str] = (),
    pages: Sequence[ResyncPage] = (),
    undelivered: Sequence[str] = (),
    writable: Sequence[str] = (),
    drops: Mapping[tuple[int, RowKey], str] = MappingProxyType({}),
    behind: Mapping[int, int] = MappingProxyType({}),
    own: Sequence[tuple[str | None, int | None, Arrived]] = (),
    rows_set: Sequence[RowOrder] = (),
    purge: Purge | None = None,
    send_nows: Sequence[str] = (),
    undone: Sequence[tuple[Arrived, ...]] = (),
    of_tables: Sequence[tuple[bool, TablesOrder]] = (),
) -> BatchDecision:
    """Decide one batch (docs/protocol.md, One batch).

    `received`: the records, those of one topic in its order; the topics may be concatenated.
    `rows`: the state of every row, with images. `view`: the clock and the marks of committed hub
    epochs; its other fields are set here. `aborts`: the transactions that an operator aborts
    before any record of the batch is processed; `retries`: the refused rows that he sends again.
    `losses`: the replicas of which input is lost; `recovers`: the rids of those whose lost input he
    gives up; `retires`: rid -> the offset before which he takes that replica out for good;
    `readmits`: those whose rids new replicas have;
    `resumes`: the agreements that he resumes; `resyncs`: those that he brings what they lack;
    `pauses`: those that he pauses; `send_nows`: those of which he lets go what waits;
    `of_tables`: the tables that he pauses, or resumes. `pages`: the
    pages of resyncs that the batch sends.
    `undelivered`: the agreements whose topics refused what the last batch sent; `writable`: those
    whose topics had, and may be written again. `drops`: (rid, row) -> the reason, of quarantined
    changes that he drops; `behind`: rid -> the last offset read of its topic when he did. `own`:
    the hub's changes, each with the CSN of the quarantined one that he released by it, or the rid
    of the replica that has the row so already.
    `rows_set`: the rows of the matrix that he sets. `purge`: what is purged. `undone`: the hub's
    transactions by which he undoes changes; their CSNs are above those of `own`.
    """
    intake = Intake(state, topology, history or {}, at_ms=view.clock_ms)
    for name in undelivered:
        orders.note_undelivered(intake, name)
    for name in writable:
        orders.note_writable(intake, name)
    for loss in losses:
        orders.record_lost_input(intake, loss)
    for rid in recovers:
        orders.recover(intake, rid)
    for rid, offset in retires.items():
        orders.retire(intake, rid, offset)
    for readmitted in readmits:
        orders.readmit(intake, readmitted)
    for abort in aborts:
        orders.end_by_hand(intake, abort)
    for retry in retries:
        orders.send_again(intake, retry)
    for name in resumes:
        orders.resume(intake, name)
    for order in resyncs:
        orders.resync(intake, order)
    for name in pauses:
        orders.pause(intake, name)
    for is_paused, of_tables_order in of_tables:
        (orders.pause_tables if is_paused else orders.resume_tables)(intake, of_tables_order)
    for name in send_nows:
        orders.send_now(intake, name)
    for wanted in rows_set:
        orders.change_row(intake, wanted)
    orders.send_due(intake)
    for (rid, row), reason in drops.items():
        orders.refresh_dropped(intake, rid, row, reason, behind)
    for released, stands_at, arrived in own:
        intake.take_own(arrived, released, stands_at)
    for transaction in undone:
        intake.take_own_transaction(transaction)
    for record in received:
        intake.take(record)
    intake.leave_unread(KEPT_BEHIND_STOP)
    state, topology = intake.state, intake.topology  # orders may have changed both
    pages = still_due(intake, pages)
    hub_epoch = next_epoch(intake, pages)
    batch_judge = BatchJudge(
        rows,
        hub_epoch,
        topology,
        intake.replicas,
        refusals=intake.refused.for_judging(),
        ranges=list(state.ranges),
        truncations=dict(state.truncations),
        standing=intake.standing,
        tombstone_epoch=state.tombstone_epoch,
    )
    batch_judge.realign(intake.repairs)
    for transaction in in_order(intake.eligible, topology.order):
        batch_judge.judge(transaction)
    batch_judge.refresh(intake.repairs)
    intake.quarantined += failed(batch_judge.entries)
    for page in pages:
        consumer = state.agreements[page.agreement].consumer
        batch_judge.send_tracked(page, consumer)
        uncarried = listed_in(page, intake)
        send_ranges(batch_judge, page, consumer, covers_before(page, intake), uncarried)
    entries, changed = tuple(batch_judge.entries), batch_judge.changed
    resolve_refusals(intake, changed, lambda _: {**rows, **changed}, pages, hub_epoch)
    tables = batch_judge.tables_after()
    return BatchDecision(
        intake,
        hub_epoch,
        entries,
        changed,
        after(intake, hub_epoch, entries, topology, view, pages, tables, purge),
    )


def after(
    intake: Intake,
    hub_epoch: int,
    entries: Sequence[LogEntry],
    topology: Topology,
    view: SendingView,
    pages: Sequence[ResyncPage],
    tables: TablesAfter,
    purge: Purge | None = None,
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
                topology.subscriptions[name].rows,
                deletes=topology.subscriptions[name].sends_deletes,
            )
            for entry in entries
        )
        for name, a in intake.agreements.items()
        if a.is_sent_to
    }
    conflicted = in_conflict(entries)
    count = len(entries)
    return state_after(intake, hub_epoch, count, has_items, view, tables, conflicted, pages, purge)


def in_order(
    transactions: Sequence[Transaction], order: JudgingOrder = JudgingOrder.LARGEST_CSN
) -> list[Transaction]:
    """Return the transactions in the order in which they are judged; each is in CSN order."""
    match order:
        case JudgingOrder.LARGEST_CSN:
            return sorted(transactions, key=lambda t: t[-1].change.csn)
        case JudgingOrder.PRIMARY_CSN:
            return sorted(transactions, key=lambda t: (t[0].change.csn, t[-1].change.csn))
        case JudgingOrder.ARRIVAL:
            return sorted(transactions, key=_arrival)


def _arrival(transaction: Transaction) -> tuple[int, str]:
    """When the last record of a transaction came; of several at once the largest CSN decides."""
    return max(one.time_ms for one in transaction), transaction[-1].change.csn
