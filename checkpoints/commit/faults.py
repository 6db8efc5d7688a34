"""Where a hub may die: the named points of the commit protocol, for tests that kill it there."""

import os
import signal
import time
from collections.abc import Callable
from enum import StrEnum

from streaming.core.model.errors import ConfigError


class FaultPoint(StrEnum):
    """The points between two side effects of a batch."""

    AFTER_PLAN = "after_plan"
    """the plan is in `epochs`, nothing else"""
    AFTER_READ = "after_read"
    """the input is on the driver and decided, nothing written"""
    AFTER_CHANGELOG = "after_changelog"
    """the changelog has the batch"""
    AFTER_CONFLICTS = "after_conflicts"
    """the conflicts are written"""
    AFTER_QUARANTINE = "after_quarantine"
    """the quarantine is written"""
    AFTER_PENDING = "after_pending"
    """the pending lists are written"""
    AFTER_EVENTS = "after_events"
    """the control events are written"""
    AFTER_DELAYS = "after_delays"
    """the delays are written"""
    BEFORE_COMMIT = "before_commit"
    """everything is written but the commit row"""
    AFTER_COMMIT = "after_commit"
    """the commit row is written, nothing is published"""
    BETWEEN_CHUNKS = "between_chunks"
    """a chunk of an agreement's batch is sent, the next is not"""
    BETWEEN_AGREEMENTS = "between_agreements"
    """one agreement's batch is sent, the next is not"""
    AFTER_MARKERS = "after_markers"
    """the notes of the packets are delivered, no packet is written"""
    BETWEEN_PACKETS = "between_packets"
    """one agreement's packet is written, the next is not"""
    AFTER_PUBLISH = "after_publish"
    """everything is delivered, Spark has not recorded it yet"""
    AFTER_ROWS = "after_rows"
    """`rows` is brought up to date, `epochs` does not record it yet"""
    BEFORE_PURGE = "before_purge"
    """a purge is committed, nothing of it is deleted"""
    AFTER_PURGE = "after_purge"
    """everything is deleted that a purge names"""


_DELIVERY_S = 0.5
"""The wait before the signal, so that what was sent is delivered."""

FaultHook = Callable[[FaultPoint], None]
"""Called at every point; in production it does nothing."""


def no_fault(_: FaultPoint) -> None:
    """Do nothing."""


def parse_fault(text: str | None) -> FaultHook:
    """Read `[stop:]<point>[:<n>]`: at the n-th time (from 1) kill or stop this very process."""
    if not text:
        return no_fault
    words = text.split(":")
    fatal_signal = signal.SIGSTOP if words[0] == "stop" else signal.SIGKILL
    words = words[1:] if words[0] == "stop" else words
    if words[0] not in set(FaultPoint):
        raise ConfigError(f"{text!r} names no fault point; there are: {', '.join(FaultPoint)}")
    fatal, left = FaultPoint(words[0]), int(words[1]) if len(words) > 1 else 1

    def reach(point: FaultPoint) -> None:
        nonlocal left
        if point is fatal:
            left -= 1
            if left == 0:
                time.sleep(_DELIVERY_S)
                os.kill(os.getpid(), fatal_signal)
                time.sleep(_DELIVERY_S)  # another thread may receive the signal, and later

    return reach
