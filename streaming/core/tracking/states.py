"""In sync, away, or coming back: the states of an agreement and the moves between them."""

from collections.abc import Mapping
from enum import StrEnum


class TrackingState(StrEnum):
    """How an agreement's consumer is brought up to date."""

    IN_SYNC = "in_sync"
    """each batch as it is committed, or page by page"""
    CHANGE_TRACKING = "change_tracking"
    """nothing is sent; the rows that it lacks are tracked"""
    RESYNC = "resync"
    """the tracked rows are sent in pages, beside live batches that hold `covers` back"""

    @property
    def is_complete(self) -> bool:
        """Return whether its consumer may fill others: in any other state rows may be missing."""
        return self is TrackingState.IN_SYNC


class TrackingEvent(StrEnum):
    """What moves an agreement from one state to another."""

    CONSUMER_LOST = "consumer_lost"
    """no acknowledgement in time, paused, or its topic cannot be written"""
    RESYNC_STARTED = "resync_started"
    """its consumer spoke again, or an operator ordered it"""
    RESYNC_FINISHED = "resync_finished"
    """the last page was sent and configuration was copied"""


MOVES: Mapping[tuple[TrackingState, TrackingState], TrackingEvent] = {
    (TrackingState.IN_SYNC, TrackingState.CHANGE_TRACKING): TrackingEvent.CONSUMER_LOST,
    (TrackingState.CHANGE_TRACKING, TrackingState.RESYNC): TrackingEvent.RESYNC_STARTED,
    (TrackingState.RESYNC, TrackingState.IN_SYNC): TrackingEvent.RESYNC_FINISHED,
    (TrackingState.RESYNC, TrackingState.CHANGE_TRACKING): TrackingEvent.CONSUMER_LOST,
}
"""From, to: the event that makes the move. There is no other move."""


def event_between(state: TrackingState, after: TrackingState) -> TrackingEvent | None:
    """Return what moves an agreement so; None: nothing does."""
    return MOVES.get((state, after))


def moved(state: TrackingState, event: TrackingEvent) -> TrackingState | None:
    """Return the state after an event; None: it does not happen in this state."""
    found = (to for (start, to), why in MOVES.items() if start is state and why is event)
    return next(found, None)
