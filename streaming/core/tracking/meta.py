"""Where an outage begins and a resync goes on: decided from what was committed of the last one."""

from dataclasses import dataclass
from enum import StrEnum

from streaming.core.tracking.entry import HubPosition
from streaming.core.tracking.states import TrackingState


class ResyncMode(StrEnum):
    """What a resync brings."""

    INCREMENTAL = "incremental"
    """the rows that were tracked, and tables that must be scanned"""
    FULL = "full"
    """all rows of all tables"""


@dataclass(frozen=True, slots=True)
class TrackingMeta:
    """What is committed beside the tracked rows of an agreement.

    `end`: the end of the resync, fixed when the consumer came back; later changes go live.
    `is_full`: nothing is tracked, and the next resync copies everything. `is_marked`: the tables of
    the resync are marked with their work, which then is the truth. `is_finished`: it is over.
    """

    end: HubPosition | None = None
    is_full: bool = False
    is_marked: bool = False
    is_finished: bool = False

    @property
    def next_mode(self) -> ResyncMode:
        """Return what the resync brings that is marked from here."""
        return ResyncMode.FULL if self.is_full else ResyncMode.INCREMENTAL

    def marked(self) -> "TrackingMeta":
        """Return the meta once the tables are marked: a copy is each table's own work from here."""
        return TrackingMeta(self.end, is_marked=True)

    def finished(self) -> "TrackingMeta":
        """Return the meta after the last page."""
        return TrackingMeta(self.end, is_marked=True, is_finished=True)


class OutageStart(StrEnum):
    """How tracking starts when a consumer goes away."""

    ANEW = "anew"
    """its last resync is over: what was tracked before is dropped"""
    ADD_UP = "add_up"
    """its last resync is not over: what was tracked stays, and more is added"""
    FULL_AGAIN = "full_again"
    """a full copy was flagged and not begun: nothing is tracked, the next resync is full"""

    @property
    def keeps_logs(self) -> bool:
        """Return whether what was tracked before is still needed."""
        return self is OutageStart.ADD_UP

    @property
    def tracks(self) -> bool:
        """Return whether rows are tracked from now on."""
        return self is not OutageStart.FULL_AGAIN

    @property
    def next_resync(self) -> ResyncMode:
        """Return what the next resync brings."""
        return self.meta.next_mode

    @property
    def meta(self) -> TrackingMeta:
        """Return the meta with which the outage starts."""
        return TrackingMeta(is_full=not self.tracks)


def outage_start(last: TrackingMeta) -> OutageStart:
    """Decide how tracking starts, from what was committed of the resync before."""
    if last.is_finished:
        return OutageStart.ANEW
    if last.is_full and not last.is_marked:
        return OutageStart.FULL_AGAIN
    return OutageStart.ADD_UP


def after_tracking_failed() -> OutageStart:
    """Return what follows if a tracked row cannot be written: never a row that is forgotten."""
    return OutageStart.FULL_AGAIN


class RestartStep(StrEnum):
    """What a hub does first when it starts within a resync."""

    TRACK_FROM_ACKED = "track_from_acked"
    """the tracked rows are filled again from the changelog, from the acked position on"""
    FINISH_BATCH = "finish_batch"
    """the batch that was planned is finished"""
    MARK_AGAIN = "mark_again"
    """the tables are marked as at the beginning"""


@dataclass(frozen=True, slots=True)
class ResyncRestart:
    """How a hub that died within a resync goes on: the state, and what it does first.

    `tracks`: rows are tracked in this state, if it is CHANGE_TRACKING.
    """

    state: TrackingState
    tracks: bool
    steps: tuple[RestartStep, ...]


def after_restart(meta: TrackingMeta) -> ResyncRestart:
    """Decide how a resync goes on after a restart, from what was committed of it."""
    if meta.end is not None and meta.is_marked:
        return ResyncRestart(TrackingState.RESYNC, tracks=True, steps=(RestartStep.FINISH_BATCH,))
    begin = () if meta.is_full else (RestartStep.TRACK_FROM_ACKED,)
    steps = (*begin, RestartStep.FINISH_BATCH, RestartStep.MARK_AGAIN)
    return ResyncRestart(TrackingState.CHANGE_TRACKING, not meta.is_full, steps)
