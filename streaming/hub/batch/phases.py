"""Where a batch is: its phases one after the other, for metrics, traces and the watchdog."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from checkpoints.commit.faults import FaultHook, FaultPoint


class BatchPhase(StrEnum):
    """A part of a batch's time; each instant of it belongs to one."""

    READ = "read"
    """its records are read and checked, while its plan is written"""
    INTAKE = "intake"
    """sessions, duplicates, pending lists; an operator's commands"""
    JUDGE = "judge"
    """who wins"""
    LOG = "log"
    """the rows of all tables and the state after it are laid out"""
    WRITE = "write"
    """the tables are appended to"""
    COMMIT = "commit"
    """the commit row is written"""
    PUBLISH = "publish"
    """the agreements are sent what they are to be sent, until Kafka has it"""
    UPKEEP = "upkeep"
    """it is taken over into memory"""


_BEHIND = {
    FaultPoint.AFTER_READ: BatchPhase.WRITE,
    FaultPoint.BEFORE_COMMIT: BatchPhase.COMMIT,
    FaultPoint.AFTER_COMMIT: BatchPhase.PUBLISH,
    FaultPoint.AFTER_PUBLISH: BatchPhase.UPKEEP,
}
"""The phase that begins behind a point of the commit."""


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """A batch in progress; times of the monotonic clock in seconds, `began_ns` since 1970."""

    batch: int
    phase: BatchPhase
    began_s: float
    phase_began_s: float
    began_ns: int


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """A finished batch: when it began, and each phase in order with its seconds."""

    batch: int
    began_ns: int
    phases: tuple[tuple[BatchPhase, float], ...]

    @property
    def seconds(self) -> float:
        """How long it took."""
        return sum(took_s for _, took_s in self.phases)


BatchObserver = Callable[[BatchTimes], None]


@dataclass(slots=True)
class BatchPhases:
    """The phases of the batch in progress; any thread may look at `running`.

    The thread that works on the batch says which phase begins, and with that which one ends.
    `observers` are called when it has ended, so they must be quick and raise nothing. `ended_s`:
    when the last one ended, by the monotonic clock.
    """

    observers: list[BatchObserver] = field(default_factory=list)
    running: RunningBatch | None = None
    ended_s: float = 0.0
    _done: list[tuple[BatchPhase, float]] = field(default_factory=list)

    def begin(self, batch: int) -> None:
        """Begin a batch, with its first phase; one whose records were looked at has begun."""
        if self.running is not None and self.running.batch == batch:
            return
        now_s = time.monotonic()
        self._done = []
        self.running = RunningBatch(batch, BatchPhase.READ, now_s, now_s, time.time_ns())

    def enter(self, phase: BatchPhase) -> None:
        """Begin a phase of the batch."""
        now_s, was = time.monotonic(), self.running
        if was is not None:
            self._done.append((was.phase, now_s - was.phase_began_s))
            self.running = RunningBatch(was.batch, phase, was.began_s, now_s, was.began_ns)

    def noting(self, reach: FaultHook) -> FaultHook:
        """The hook that also notes which phase of a batch begins."""

        def at(point: FaultPoint) -> None:
            if point in _BEHIND:
                self.enter(_BEHIND[point])
            reach(point)

        return at

    def give_up(self) -> None:
        """End a batch that failed or is not needed; nobody is told its times."""
        self.running, self.ended_s = None, time.monotonic()

    def end(self) -> float:
        """End the batch; how many seconds it took."""
        was = self.running
        if was is None:
            return 0.0
        self.enter(was.phase)
        self.running, self.ended_s = None, time.monotonic()
        found = BatchTimes(was.batch, was.began_ns, tuple(self._done))
        for observer in self.observers:
            observer(found)
        return found.seconds
