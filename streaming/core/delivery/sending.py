"""What an agreement is sent by a batch: live, page by page while catching up, or nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from streaming.core.conflict.judge import Judged, Verdict
from streaming.core.model.change import Op, RowKey
from streaming.core.model.record import Item, ItemType, Stopped
from streaming.core.model.row import ALL_OFFSETS, Floor, RowState
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.model.state import AgreementState, HubState, SendRange
from streaming.core.model.statuses import AgreementStatus, remedy_of

CONFLICT = "conflict"
"""The cause of a refresh of a row whose change was in conflict."""
WHOLE = "transaction"
"""The cause of a refresh of a row that was rejected with its transaction."""


class Refresh(NamedTuple):
    """A row that the hub sends to one replica as it is at this position in hub order.

    `behind`: it realigns the row for changes after this offset of the replica's topic.
    """

    to: int
    table: str
    key: str
    row: RowState
    cause: str
    behind: int = ALL_OFFSETS


LogEntry = Judged | Refresh


@dataclass(frozen=True, slots=True)
class EpochMark:
    """A committed hub epoch, and the RUVs after it, by data set.

    `entries`: how many rows it adds to a page that ends with it: those that no earlier hub epoch of
    the page has, or all of its changelog rows, which may be more.
    """

    hub_epoch: int
    entries: int
    ruvs: Mapping[str, Ruv]


@dataclass(frozen=True, slots=True)
class SendingView:
    """What sending is decided from: the hub after the batch.

    `marks(after)`: the hub epochs above `after` in order, this batch's included.
    `nudged`: an operator runs `level`, so a lagging covers is sent at once.
    """

    previous: int
    hub_epoch: int
    ruvs: Mapping[str, Ruv]
    clock_ms: int
    nudged: bool
    marks: Callable[[int], Sequence[EpochMark]]


class SendPlan(NamedTuple):
    """An agreement after a batch, and the range that the batch publishes to it; None: nothing."""

    agreement: AgreementState
    to_send: SendRange | None = None


def plan(
    agreement: AgreementState,
    view: SendingView,
    dataset: str,
    *,
    has_items: bool,
    page_items: int,
    covers_interval_ms: int,
) -> SendPlan:
    """The agreement after this batch, and the range of hub epochs that the batch publishes to it.

    dataset: the one that it serves. has_items: this batch's own hub epoch holds something for
    the consumer.
    """
    if agreement.is_stopped or agreement.session is None:
        return SendPlan(agreement)
    if agreement.scanned < view.previous:
        return _page(agreement, view, dataset, page_items)
    now = view.ruvs.get(dataset, NOTHING_KNOWN)
    if view.hub_epoch > agreement.scanned and has_items:
        return _sent(agreement, view.hub_epoch, now, view)
    scanned = replace(agreement, scanned=view.hub_epoch, status=AgreementStatus.IN_SYNC)
    due = view.nudged or view.clock_ms - agreement.sent_ms >= covers_interval_ms
    if agreement.sent_covers < view.hub_epoch and due:
        return _sent(scanned, view.hub_epoch, now, view)
    return SendPlan(scanned)


def wants_batch(
    agreement: AgreementState,
    hub_epoch: int,
    clock_ms: int,
    covers_interval_ms: int,
    *,
    nudged: bool,
) -> bool:
    """Return whether a batch without input would publish something to this agreement."""
    if agreement.is_stopped or agreement.session is None:
        return False
    if agreement.scanned < hub_epoch:
        return True
    due = nudged or clock_ms - agreement.sent_ms >= covers_interval_ms
    return agreement.sent_covers < hub_epoch and due


def _page(agreement: AgreementState, view: SendingView, dataset: str, page_items: int) -> SendPlan:
    """A page from the changelog: whole hub epochs, at least one, at most `page_items` rows.

    It is one batch, with the last item of each row (`last_of_rows`).
    """
    end, entries = None, 0
    for mark in view.marks(agreement.scanned):
        entries += mark.entries
        if end is not None and mark.entries and entries > page_items:
            break
        end = mark
    if end is None:
        return SendPlan(agreement)
    return _sent(agreement, end.hub_epoch, end.ruvs.get(dataset, NOTHING_KNOWN), view)


def _sent(agreement: AgreementState, hub_epoch: int, ruv: Ruv, view: SendingView) -> SendPlan:
    is_live = hub_epoch == view.hub_epoch
    sent = replace(
        agreement,
        status=AgreementStatus.IN_SYNC if is_live else AgreementStatus.CATCHING_UP,
        sent_epoch=hub_epoch,
        sent_covers=max(agreement.sent_covers, hub_epoch),
        sent_ruv=ruv,
        sent_ms=view.clock_ms,
        scanned=hub_epoch,
    )
    to_send = SendRange(agreement.scanned, hub_epoch, agreement.sent_epoch, agreement.sent_ruv)
    return SendPlan(sent, to_send)


def stop_answers(before: HubState | None, after: HubState) -> list[Stopped]:
    """What the consumers are told that this batch stopped, or that started a session while stopped.

    `before` None: all that are stopped are told, as when the last batch is published again.
    """
    known = {} if before is None else before.agreements
    return [
        Stopped(name, after.generation, agreement.session, agreement.status_text, remedy)
        for name, agreement in after.agreements.items()
        if agreement.session is not None
        and agreement.status.ends_agent
        and (remedy := remedy_of(agreement.status, agreement.detail)) is not None
        and not (name in known and _same_stop(known[name], agreement))
    ]


def _same_stop(one: AgreementState, other: AgreementState) -> bool:
    return (one.status_text, one.session) == (other.status_text, other.session)


def is_for(
    entry: LogEntry, consumer: int, tables: Iterable[str], ruv: Ruv, floors: Iterable[Floor] = ()
) -> bool:
    """Return whether a changelog entry is sent to this consumer.

    Changes that its RUV covers are skipped. Its own changes are not sent back, unless it lost them
    (`floors`). Refreshes are skipped by covers only, because they have the CSN of an old winner
    (docs/traps.md, A refresh carries an old CSN).
    """
    if isinstance(entry, Refresh):
        return entry.to == consumer
    change = entry.arrived.change
    accepted = entry.verdict is Verdict.ACCEPTED and change.table in tables
    if change.rid == consumer:
        return accepted and any(floor.gives_back(change.csn) for floor in floors)
    return accepted and not ruv.covers(change.csn)


def row_of(entry: LogEntry) -> RowKey:
    """Return the row that an entry is of."""
    return (entry.table, entry.key) if isinstance(entry, Refresh) else entry.arrived.change.row


def last_of_rows(entries: Sequence[LogEntry]) -> list[LogEntry]:
    """Return the entries of a page that are sent: of each row the last one, in hub order.

    A consumer applies a page as one local transaction and never shows what lay in between.
    """
    last = {row_of(entry): place for place, entry in enumerate(entries)}
    return [entries[place] for place in sorted(last.values())]


def item(entry: LogEntry) -> Item:
    """Return the item that a consumer is sent for an entry."""
    if isinstance(entry, Refresh):
        op = Op.DELETE if entry.row.image is None else Op.UPDATE
        row = entry.row
        return Item(
            ItemType.REFRESH,
            entry.table,
            entry.key,
            op,
            row.image,
            row.csn,
            row.author,
            None,
            entry.cause,
        )
    change = entry.arrived.change
    return Item(
        ItemType.CHANGE,
        change.table,
        change.key,
        change.op,
        entry.after.image,
        change.csn,
        change.rid,
        change.prim_csn,
    )
