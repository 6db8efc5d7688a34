"""When an agreement sends: which of the committed hub epochs it may be sent now.

This is the one rule; what is sent page by page, whether a resync may begin, `level`, the lag and
the status ask it. It extends docs/protocol.md, When an agreement sends.

1. Without a limit everything is due as soon as it is committed.
2. With a delay a hub epoch is due when its commit is that old, by the hub's clock as commits hold
   it. That clock never goes back, so a hub epoch is never due before one that precedes it.
3. Outside the hours of an agreement nothing is sent, pages of a resync included; nor is anything
   while it has sent more than its bytes a second.
4. An operator may release what waits, once: all that is committed when he does.
5. A resync brings rows as they stand, which are younger than the delay. So none begins by itself:
   what a log can bring comes from the log when it is due, and a copy waits for an operator. While
   one that he released is under way everything is due.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from streaming.core.model.statuses import AwayReason
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.held_back import HeldBack
from streaming.core.state.sending_times import SendingTimes

_NEVER = -1


class HeldReason(StrEnum):
    """Why something of an agreement is not sent yet although it is committed."""

    DELAY = "delay"
    """its commit is not as old as the agreement's delay"""
    HOURS = "hours"
    """it is none of the agreement's hours"""
    RATE = "rate"
    """the agreement has sent more than its bytes a second"""


@dataclass(frozen=True, slots=True)
class DueLimit:
    """The hub epochs that are due: those committed until `committed_ms`, and all to `released`.

    `is_closed`: none but those that are released; `committed_ms` says nothing then.
    """

    committed_ms: int
    released: int = 0
    is_closed: bool = False

    def allows(self, hub_epoch: int, committed_ms: int) -> bool:
        """Return whether this hub epoch is due."""
        is_due = committed_ms <= self.committed_ms and not self.is_closed
        return hub_epoch <= self.released or is_due


def due_limit(
    agreement: AgreementState,
    times: SendingTimes,
    held: HeldBack | None,
    clock_ms: int,
    *,
    is_throttled: bool = False,
) -> DueLimit | None:
    """What an agreement with these times may be sent at this time; None: everything.

    `is_throttled`: it has sent more than its bytes a second.
    """
    released = held.released if held else 0
    if is_throttled or not times.is_open(clock_ms):
        return DueLimit(_NEVER, 0 if is_throttled else released, is_closed=True)
    if not times.delay_ms or agreement.resync is not None:
        return None
    return DueLimit(clock_ms - times.delay_ms, released)


def surely_waits(agreement: AgreementState, limit: DueLimit, held: HeldBack | None) -> bool:
    """Return whether nothing behind what was sent is due, as far as is known without a look."""
    is_known = held is not None and held.after == agreement.scanned
    return is_known and held is not None and not limit.allows(held.after + 1, held.since_ms)


class WaitingEpochs(NamedTuple):
    """The hub epochs behind `after` that are not due; the first one is at `until_ms`."""

    after: int
    until_ms: int
    reason: HeldReason


def waiting_epochs(
    agreement: AgreementState, times: SendingTimes, held: HeldBack | None, clock_ms: int
) -> WaitingEpochs | None:
    """What of an agreement waits because it is not due; None: nothing, or some of it is due."""
    limit = due_limit(agreement, times, held, clock_ms)
    if limit is None or held is None or not agreement.is_sent_to or agreement.resync is not None:
        return None
    if not surely_waits(agreement, limit, held):
        return None
    due_ms = times.due_ms(max(held.since_ms, clock_ms - times.delay_ms))
    is_young = held.since_ms + times.delay_ms > clock_ms
    return WaitingEpochs(held.after, due_ms, HeldReason.DELAY if is_young else HeldReason.HOURS)


def without_early_rows(
    agreement: AgreementState, delay_ms: int, clock_ms: int, *, is_released: bool
) -> AgreementState:
    """The agreement whose resync would begin, unless it would bring rows that are not due.

    What its consumer lacks then comes from the log, as it does to one that is slow. Where only a
    copy brings it, that waits. `is_released`: an operator lets it begin.
    """
    if not delay_ms or is_released or not agreement.begins_resync:
        return agreement
    if agreement.is_full or agreement.scans:
        return agreement.away(AwayReason.DELAYED, clock_ms)
    return replace(agreement.sent_again(), detail="", resync=None)
