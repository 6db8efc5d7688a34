"""The logs of tracking and their compaction, in steps after each of which the hub may die.

New entries are appended to `full`. Compaction freezes a log, writes the newest entry of each row
to `compact`, and then drops what it froze. Whatever step was the last one, no row is forgotten; a
step that was cut off is repeated, which leaves repeated entries at worst. Readers merge.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from streaming.core.model.errors import StateError
from streaming.core.tracking.entry import HubPosition, TrackedRow, newest


@dataclass(frozen=True, slots=True)
class FrozenLog:
    """A log that is being compacted; what stands behind `upto` was never committed."""

    entries: tuple[TrackedRow, ...]
    upto: HubPosition | None = None


@dataclass(frozen=True, slots=True)
class TrackingLogs:
    """The entries of one agreement: as they came, frozen, and compacted.

    `compact` is None as long as nothing was ever compacted.
    """

    full: tuple[TrackedRow, ...] = ()
    transient: FrozenLog | None = None
    compact: tuple[TrackedRow, ...] | None = None

    def lacking(self) -> tuple[TrackedRow, ...]:
        """Return the newest entry of each row in any of the logs: what the consumer lacks."""
        frozen = newest(self.transient.entries, self.transient.upto) if self.transient else ()
        return newest((*(self.compact or ()), *frozen, *self.full))

    def with_entries(self, entries: Iterable[TrackedRow]) -> "TrackingLogs":
        """Return the logs after more changes; compaction may be under way."""
        return replace(self, full=(*self.full, *entries))


class CompactionStep(StrEnum):
    """A step of compaction, each of which is written as a whole."""

    FREEZE_FULL = "freeze_full"
    """`full` becomes `transient`; changes go to a new `full`"""
    FREEZE_COMPACT = "freeze_compact"
    """`compact` becomes `transient`, because it holds rows more than once"""
    WRITE = "write"
    """the newest entry of each row in `transient` is appended to `compact`"""
    DROP = "drop"
    """`transient` is dropped: all that it held is in `compact`"""


MERGE = (CompactionStep.WRITE, CompactionStep.DROP)
"""What follows every freeze, and what a start finds undone."""


def full_round(logs: TrackingLogs) -> tuple[CompactionStep, ...]:
    """Return the steps after which each row stands in `compact` once, and nowhere else.

    Before a resync, and after a crash: what an earlier round left comes first.
    """
    left = MERGE if logs.transient else ()
    full = (CompactionStep.FREEZE_FULL, *MERGE) if logs.full else ()
    return (*left, *full, CompactionStep.FREEZE_COMPACT, *MERGE)


def background_round(
    logs: TrackingLogs, *, is_full_due: bool, is_compact_due: bool
) -> tuple[CompactionStep, ...]:
    """Return the steps of a round beside the batches; afterwards `compact` may repeat rows."""
    left = MERGE if logs.transient else ()
    full = (CompactionStep.FREEZE_FULL, *MERGE) if is_full_due else ()
    compact = (CompactionStep.FREEZE_COMPACT, *MERGE) if is_compact_due else ()
    return (*left, *full, *compact)


def is_due(added: int, compact_after: int, *, is_running: bool, has_transient: bool) -> bool:
    """Return whether a log is to be frozen: more than `compact_after` was added since it last was.

    Not while a round is under way, and never over a frozen log, which nothing else would have.
    """
    return added > compact_after and not is_running and not has_transient


def after_step(
    logs: TrackingLogs, step: CompactionStep, upto: HubPosition | None = None
) -> TrackingLogs:
    """Return the logs after a step; StateError if it would overwrite a frozen log.

    `upto`: for FREEZE_FULL, the last committed position if the log may be ahead of it.
    """
    match step:
        case CompactionStep.FREEZE_FULL:
            return replace(logs, full=(), transient=_frozen(logs, logs.full, upto))
        case CompactionStep.FREEZE_COMPACT:
            return replace(logs, compact=None, transient=_frozen(logs, logs.compact or (), None))
        case CompactionStep.WRITE if logs.transient is not None:
            written = newest(logs.transient.entries, logs.transient.upto)
            return replace(logs, compact=(*(logs.compact or ()), *written))
        case CompactionStep.WRITE | CompactionStep.DROP:
            return replace(logs, transient=None)


def compacted(logs: TrackingLogs, upto: HubPosition | None = None) -> TrackingLogs:
    """Return the logs after a full round; `upto` as in `after_step`."""
    for step in full_round(logs):
        logs = after_step(logs, step, upto)
    return logs


def _frozen(
    logs: TrackingLogs, entries: tuple[TrackedRow, ...], upto: HubPosition | None
) -> FrozenLog:
    if logs.transient is not None:
        raise StateError(
            "a frozen log of tracked rows is not compacted yet, and freezing another one would"
            " overwrite it: finish the round with its steps WRITE and DROP first"
        )
    return FrozenLog(entries, upto)


def discard_behind(last_tracked: HubPosition | None, committed: HubPosition) -> HubPosition | None:
    """Return the position behind which entries are discarded after a crash; None: there are none.

    Entries may be written before the batch that they are of is committed. A log that is behind
    needs nothing here: it is filled again from the changelog, and repeated entries do no harm.
    """
    ahead = last_tracked is not None and last_tracked > committed
    return committed if ahead else None


def after_crash(logs: TrackingLogs, committed: HubPosition) -> TrackingLogs:
    """Return the logs as a start must leave them: what was never committed is bounded off.

    The bound belongs to what is frozen now, and goes with it; a later log may pass it.
    """
    upto = discard_behind(max((e.position for e in logs.full), default=None), committed)
    if upto is None:
        return logs
    frozen = newest(logs.transient.entries, logs.transient.upto) if logs.transient else ()
    return replace(logs, full=(), transient=FrozenLog((*frozen, *logs.full), upto))
