"""Whether a replica's agent is heard: otherwise nobody knows what its database holds."""

from dataclasses import dataclass
from enum import StrEnum

from streaming.core.model.statuses import ReplicaStatus
from streaming.core.state.replica_state import ReplicaState


@dataclass(frozen=True, slots=True)
class TopicMove:
    """Between which two moments, by the hub's clock, the last record came to a topic.

    `after_ms` is 0 where nobody saw the topic before.
    """

    after_ms: int
    by_ms: int


class UnheardReason(StrEnum):
    """Why nothing can be said of what a replica's database holds."""

    NEVER = "never"
    """its agent has never said hello"""
    ENDED = "ended"
    """its agent has said goodbye"""
    SILENT = "silent"
    """its agent, of which a heartbeat is due every ten seconds, said nothing for too long"""


@dataclass(frozen=True, slots=True)
class Unheard:
    """Since when nothing is known of a replica; `unpublished`: of a goodbye, otherwise None."""

    why: UnheardReason
    since_ms: int | None = None
    unpublished: int | None = None


def unheard(
    replica: ReplicaState, move: TopicMove | None, at_ms: int, timeout_ms: int
) -> Unheard | None:
    """Return why nothing can be said of a replica at this moment; None: its agent is heard.

    A replica that is stopped is no matter of hearing.
    """
    if replica.status is ReplicaStatus.SILENT:
        return Unheard(UnheardReason.NEVER)
    if replica.is_stopped:
        return None
    if replica.ended is not None:
        return Unheard(UnheardReason.ENDED, replica.ended.at_ms, replica.ended.unpublished)
    last_record_ms = _last_record_ms(replica.seen_ms, move)
    return (
        Unheard(UnheardReason.SILENT, last_record_ms)
        if at_ms - last_record_ms > timeout_ms
        else None
    )


def _last_record_ms(seen_ms: int, move: TopicMove | None) -> int:
    """When its last record was written: its own time, within what the hub saw by its own clock.

    So no agent is silent because its clock is slow, or heard because its clock is fast.
    """
    return seen_ms if move is None else min(max(seen_ms, move.after_ms), move.by_ms)
