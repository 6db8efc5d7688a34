"""What the resync of a consumer waits for, and since when, by what the hub has committed."""

from enum import StrEnum
from typing import NamedTuple

from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.state.agreement_state import AgreementState
from streaming.core.text.wording import as_count
from streaming.core.tracking.resync import Resync


class ResyncWait(StrEnum):
    """What has to happen before a resync goes on."""

    BATCH = "batch"
    """the hub's next batch, which takes the order or begins the resync"""
    OPERATOR = "operator"
    """an operator, who paused it, or has to resume it or release its copy"""
    TOPIC = "topic"
    """its updates topic, which refused what it was sent: the hub tries again"""
    AGENT = "agent"
    """the start of its agent, which has ended"""
    HELLO = "hello"
    """a hello of its agent"""
    RECORD = "record"
    """any record of its agent, which acknowledged nothing in time"""
    SNAPSHOT = "snapshot"
    """the end of the snapshot that its agent publishes"""
    HOURS = "hours"
    """the hours at which its agreement sends"""
    TURN = "turn"
    """its turn: the hub prepares limits.resync_workers resyncs that began before"""
    ROWS = "rows"
    """the hub, which looks for the rows of the next page and sorts them"""
    PAGES = "pages"
    """its acknowledgement of pages that were sent"""
    LAST_PAGE = "last_page"
    """its acknowledgement of the last page"""


class WaitingResync(NamedTuple):
    """What a resync waits for, since when (0: unknown); `pages`: sent and not acknowledged."""

    what: ResyncWait
    since_ms: int
    pages: int = 0

    @property
    def text(self) -> str:
        """What it waits for, as people read it behind `waits for`."""
        match self.what:
            case ResyncWait.BATCH:
                return "the hub's next batch"
            case ResyncWait.OPERATOR:
                return "an operator"
            case ResyncWait.TOPIC:
                return "its updates topic, which refuses what it is sent"
            case ResyncWait.AGENT:
                return "the start of its agent, which has ended"
            case ResyncWait.HELLO:
                return "a hello of its agent"
            case ResyncWait.RECORD:
                return "its agent, which acknowledged nothing in time"
            case ResyncWait.SNAPSHOT:
                return "the end of the snapshot that its agent publishes"
            case ResyncWait.HOURS:
                return "the `hours` of its agreement"
            case ResyncWait.TURN:
                return "its turn, behind resyncs that began before (limits.resync_workers)"
            case ResyncWait.ROWS:
                return "the hub, which looks for the rows of the next page"
            case ResyncWait.PAGES:
                return f"its acknowledgement of {as_count(self.pages, 'page')}"
            case ResyncWait.LAST_PAGE:
                return "its acknowledgement of the last page"


def waiting_resync(
    agreement: AgreementState,
    *,
    ordered_ms: int | None,
    ended_ms: int | None,
    seen_ms: int,
    has_turn: bool,
    is_open: bool = True,
) -> WaitingResync:
    """What a consumer waits for that is away, in resync, or to be resynced.

    `ordered_ms`: when an operator ordered one that the hub has not taken. `ended_ms`, `seen_ms`:
    when its agent said goodbye, and was last heard. `has_turn`: the hub prepares its rows now.
    `is_open`: it is one of the hours of the agreement.
    """
    if ordered_ms is not None:
        return WaitingResync(ResyncWait.BATCH, ordered_ms)
    if agreement.status is AgreementStatus.CHANGE_TRACKING:
        return WaitingResync(_AWAY[AwayReason(agreement.detail)], agreement.away_ms)
    if ended_ms is not None:
        return WaitingResync(ResyncWait.AGENT, ended_ms)
    if agreement.session is None:
        return WaitingResync(ResyncWait.HELLO, seen_ms)
    if agreement.status is AgreementStatus.SNAPSHOT:
        return WaitingResync(ResyncWait.SNAPSHOT, agreement.acked_ms)
    if agreement.is_stopped:
        return WaitingResync(ResyncWait.OPERATOR, 0)
    resync = agreement.resync
    if resync is None or resync.end is None:
        return WaitingResync(ResyncWait.BATCH, agreement.acked_ms)
    return _under_way(agreement, resync, has_turn=has_turn, is_open=is_open)


_AWAY = {
    AwayReason.SILENT: ResyncWait.RECORD,
    AwayReason.PAUSED: ResyncWait.OPERATOR,
    AwayReason.UNWRITABLE: ResyncWait.TOPIC,
    AwayReason.ELSEWHERE: ResyncWait.HELLO,
    AwayReason.DELAYED: ResyncWait.OPERATOR,
}


def _under_way(
    agreement: AgreementState, resync: Resync, *, has_turn: bool, is_open: bool
) -> WaitingResync:
    sent_ms = agreement.behind_ms or max(resync.started_ms, agreement.sent_ms)
    if resync.last_page:
        return WaitingResync(ResyncWait.LAST_PAGE, sent_ms, len(resync.unacked))
    if resync.unacked:
        return WaitingResync(ResyncWait.PAGES, sent_ms, len(resync.unacked))
    if not is_open:
        return WaitingResync(ResyncWait.HOURS, 0)
    what = ResyncWait.ROWS if has_turn else ResyncWait.TURN
    return WaitingResync(what, max(resync.started_ms, agreement.acked_ms))


def prepares_rows(agreement: AgreementState) -> bool:
    """Return whether the hub looks for rows of its resync, and none of them is on its way."""
    resync = agreement.resync
    is_idle = resync is not None and not (resync.unacked or resync.last_page)
    return agreement.goes_on_with_resync and agreement.session is not None and is_idle
