"""What an agreement is sent by a batch: live, page by page while catching up, or nothing."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from streaming.core.conflict.judge import Judged
from streaming.core.delivery.due import DueLimit, surely_waits
from streaming.core.matrix.packets import Place
from streaming.core.model.change import NOBODY
from streaming.core.model.row import ALL_OFFSETS, RowState
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.model.statuses import AgreementStatus, remedy_of
from streaming.core.records.record import KEEP, Item, ItemType, Stopped
from streaming.core.state.agreement_state import AgreementState, SendRange
from streaming.core.state.held_back import HeldBack
from streaming.core.state.hub_state import HubState
from streaming.core.tracking.ranges import KeyRange
from streaming.core.tracking.resync import CoveredPosition

CONFLICT = "conflict"
"""The cause of a refresh of a row whose change was in conflict."""
WHOLE = "transaction"
"""The cause of a refresh of a row that was rejected with its transaction."""
FILTERED = "filter"
"""The cause of a refresh of a row because what its replica is shown is filtered."""
PAGE = "page"
"""The cause of a refresh that is part of a resync's page."""


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


class RangeRefresh(NamedTuple):
    """All rows of a range of keys, as they are at this position in hub order, for one replica.

    `rows`: (key, row) in the order of keys, or empty where the hub reads them when it publishes.
    `kept`: the keys of rows that are left to the replica (core/batch/left_out.py). `is_vouched`:
    the hub vouches for those that a filter hides (core/batch/vouching.py).
    """

    to: int
    range: KeyRange
    rows: tuple[tuple[str, RowState], ...] = ()
    kept: tuple[str, ...] = ()
    is_vouched: bool = False


LogEntry = Judged | Refresh | RangeRefresh


@dataclass(frozen=True, slots=True)
class EpochMark:
    """A committed hub epoch, and the RUVs after it, by data set.

    `committed_ms`: when it was committed, by the hub's clock.
    `entries`: how many rows it adds to a page that ends with it: those that no earlier hub epoch of
    the page has, or all of its changelog rows, which may be more.
    """

    hub_epoch: int
    entries: int
    ruvs: Mapping[str, Ruv]
    committed_ms: int = 0


@dataclass(frozen=True, slots=True)
class SendingView:
    """What sending is decided from: the hub after the batch.

    `marks(after, to)`: the hub epochs in (after, to] in order, this batch's included.
    `nudged`: an operator runs `level`, so a lagging covers is sent at once. `unread`: the replicas
    whose topics hold records that no batch has read, so an acknowledgement may be among them.
    `places`: agreement -> up to where the batch reads the records that packets bring.
    """

    previous: int
    hub_epoch: int
    ruvs: Mapping[str, Ruv]
    clock_ms: int
    nudged: bool
    marks: Callable[[int, int], Sequence[EpochMark]]
    unread: Collection[int] = ()
    places: Mapping[str, Place] = field(default_factory=dict)


class SendPlan(NamedTuple):
    """An agreement after a batch, and the range that the batch publishes to it; None: nothing.

    `held_back`: what it is not sent yet because of when it sends.
    """

    agreement: AgreementState
    to_send: SendRange | None = None
    held_back: HeldBack | None = None


DUE_EPOCHS = 1_000
"""How many hub epochs are looked at in one batch to find out which of them are due."""


def plan(
    agreement: AgreementState,
    view: SendingView,
    dataset: str,
    *,
    has_items: bool,
    page_items: int,
    covers_interval_ms: int,
    ranges: tuple[KeyRange, ...] = (),
) -> SendPlan:
    """The agreement after this batch, and the range of hub epochs that the batch publishes to it.

    For one whose consumer reads its topic; others are sent packets (exporting.py).
    dataset: the one that it serves. has_items: this batch's own hub epoch holds something for
    the consumer. ranges: what the batch's page sends it as ranges.
    """
    if not agreement.is_sent_to:
        return SendPlan(agreement)
    if agreement.scanned < view.previous:
        return catch_up(agreement, view, dataset, page_items)
    now = view.ruvs.get(dataset, NOTHING_KNOWN)
    if view.hub_epoch > agreement.scanned and has_items:
        return sent_live(agreement, now, view, ranges)
    if agreement.is_held(view.hub_epoch):
        return SendPlan(replace(agreement, scanned=view.hub_epoch))
    scanned = replace(agreement, scanned=view.hub_epoch, status=AgreementStatus.IN_SYNC)
    due = view.nudged or view.clock_ms - agreement.sent_ms >= covers_interval_ms
    if agreement.sent_covers < view.hub_epoch and due:
        return sent_live(scanned, now, view)
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
    if not agreement.is_sent_to:
        return False
    if agreement.scanned < hub_epoch:
        return True
    if agreement.is_held(hub_epoch):
        return False
    due = nudged or clock_ms - agreement.sent_ms >= covers_interval_ms
    return agreement.sent_covers < hub_epoch and due


def catch_up(
    agreement: AgreementState, view: SendingView, dataset: str, page_items: int
) -> SendPlan:
    """A page from the changelog: whole hub epochs, at least one, at most `page_items` rows.

    It is one batch, with the last item of each row (`last_of_rows`).
    """
    end, entries = None, 0
    for mark in view.marks(agreement.scanned, view.hub_epoch):
        entries += mark.entries
        if end is not None and mark.entries and entries > page_items:
            break
        end = mark
    if end is None:
        return SendPlan(agreement)
    return _sent(agreement, end.hub_epoch, end.ruvs.get(dataset, NOTHING_KNOWN), view)


def plan_due(
    agreement: AgreementState,
    view: SendingView,
    dataset: str,
    limit: DueLimit,
    held: HeldBack | None,
    *,
    page_items: int,
    covers_interval_ms: int,
) -> SendPlan:
    """The agreement after this batch, and a page of what is due of what it was not sent.

    It is a page as of `catch_up`, and there is one in `covers_interval_ms` at most.
    `limit`: what is due; `held`: what is known of what it was not sent.
    """
    if not agreement.is_sent_to:
        return SendPlan(agreement, None, held)
    if agreement.resync is not None:  # beside its pages nothing waits but for the hours
        return SendPlan(agreement, None, held)
    is_time = view.nudged or view.clock_ms - agreement.sent_ms >= covers_interval_ms
    in_step = replace(agreement, status=AgreementStatus.IN_SYNC)
    if agreement.sent_covers < agreement.scanned and is_time and not limit.is_closed:
        # all up to there was sent, or is nothing for it; a hub that was restored asks for a hello
        ruv = _ruv_at(agreement, view, dataset)
        in_step, to_send, _ = _sent(in_step, agreement.scanned, ruv, view)
        return SendPlan(replace(in_step, status=AgreementStatus.IN_SYNC), to_send, held)
    if agreement.scanned >= view.hub_epoch:
        return SendPlan(in_step)
    if agreement.scanned >= view.previous:  # only this batch's own hub epoch, committed now
        return SendPlan(in_step, None, HeldBack(agreement.scanned, view.clock_ms))
    if surely_waits(agreement, limit, held):
        return SendPlan(in_step, None, held)
    if not is_time:
        return SendPlan(agreement, None, held)
    end, behind = _due_page(agreement, view, limit, page_items)
    since_ms = behind.committed_ms if behind else 0
    if end is None:
        return SendPlan(in_step, None, HeldBack(agreement.scanned, since_ms or view.clock_ms))
    ruv = end.ruvs.get(dataset, NOTHING_KNOWN)
    sent, to_send, _ = _sent(agreement, end.hub_epoch, ruv, view)
    is_more = behind is None or limit.allows(behind.hub_epoch, behind.committed_ms)
    status = AgreementStatus.CATCHING_UP if is_more else AgreementStatus.IN_SYNC
    held = HeldBack(end.hub_epoch, since_ms, limit.released if is_more else 0)
    return SendPlan(replace(sent, status=status), to_send, held)


def _ruv_at(agreement: AgreementState, view: SendingView, dataset: str) -> Ruv:
    """The RUV behind the last hub epoch that was scanned; of one that is in no commit the sent."""
    at = agreement.scanned
    if at >= view.hub_epoch:
        return view.ruvs.get(dataset, NOTHING_KNOWN)
    marks = view.marks(at - 1, at)
    return marks[0].ruvs.get(dataset, NOTHING_KNOWN) if marks else agreement.sent_ruv


def _due_page(
    agreement: AgreementState, view: SendingView, limit: DueLimit, page_items: int
) -> tuple[EpochMark | None, EpochMark | None]:
    """The last hub epoch of a page of what is due, and the one behind it, if that is known."""
    after, end, entries = agreement.scanned, None, 0
    for mark in view.marks(after, after + DUE_EPOCHS) or view.marks(after, view.hub_epoch):
        entries += mark.entries
        is_full = end is not None and mark.entries > 0 and entries > page_items
        if is_full or not limit.allows(mark.hub_epoch, mark.committed_ms):
            return end, mark
        end = mark
    return end, None


def wants_due_batch(
    agreement: AgreementState,
    hub_epoch: int,
    clock_ms: int,
    covers_interval_ms: int,
    limit: DueLimit,
    held: HeldBack | None,
) -> bool:
    """Return whether a batch without input has to look for what is due of this agreement."""
    if not agreement.is_sent_to or clock_ms - agreement.sent_ms < covers_interval_ms:
        return False
    if agreement.resync is not None:
        return False
    if agreement.sent_covers < agreement.scanned and not limit.is_closed:
        return True
    return agreement.scanned < hub_epoch and not surely_waits(agreement, limit, held)


def sent_live(
    agreement: AgreementState, ruv: Ruv, view: SendingView, ranges: tuple[KeyRange, ...] = ()
) -> SendPlan:
    """The batch's own hub epoch, behind which the RUV is this."""
    return _sent(agreement, view.hub_epoch, ruv, view, ranges)


def _sent(
    agreement: AgreementState,
    hub_epoch: int,
    ruv: Ruv,
    view: SendingView,
    ranges: tuple[KeyRange, ...] = (),
) -> SendPlan:
    is_live, is_held = hub_epoch == view.hub_epoch, agreement.is_held(hub_epoch)
    position = CoveredPosition(hub_epoch, ruv)
    if agreement.resync is not None and is_held:
        # a row that is still to come by a page may be older than what goes live beside it
        position = agreement.resync.held
    done = AgreementStatus.IN_SYNC if is_live else AgreementStatus.CATCHING_UP
    sent = replace(
        agreement,
        status=AgreementStatus.RESYNC if is_held else done,
        sent_epoch=hub_epoch,
        sent_covers=max(agreement.sent_covers, position.covers),
        published=max(agreement.published, position.covers),
        sent_ruv=ruv,
        sent_ms=view.clock_ms,
        scanned=hub_epoch,
    )
    after, prev, known = agreement.scanned, agreement.sent_epoch, agreement.sent_ruv
    return SendPlan(sent, SendRange(after, hub_epoch, prev, known, position, ranges))


def stop_answers(before: HubState | None, after: HubState) -> list[Stopped]:
    """What the consumers are told that this batch stopped, or that started a session while stopped.

    `before` None: all that are stopped are told, as when the last batch is published again.
    """
    known = {} if before is None else before.agreements
    return [
        Stopped(name, after.generation, agreement.session, agreement.status_text, remedy)
        for name, agreement in after.agreements.items()
        if (remedy := _told_remedy(agreement)) is not None
        and agreement.session is not None
        and not is_told(known.get(name), agreement)
    ]


def is_told(before: AgreementState | None, agreement: AgreementState) -> bool:
    """Return whether its consumer need not be told in this batch that it is stopped."""
    is_same = before is not None and _same_stop(before, agreement)
    return is_same or _told_remedy(agreement) is None


def _told_remedy(agreement: AgreementState) -> str | None:
    """What the agent of a stopped consumer is told to do; None: there is no such agent."""
    if agreement.session is None or not agreement.status.ends_agent:
        return None
    return remedy_of(agreement.status, agreement.detail)


def _same_stop(one: AgreementState, other: AgreementState) -> bool:
    return (one.status_text, one.session) == (other.status_text, other.session)


def kept_item(table: str, key: str) -> Item:
    """Return the item of a row that a range leaves to its consumer."""
    return Item(ItemType.KEPT, table, key, KEEP, None, None, NOBODY)
