"""The open changes of a hub at work, counted in its memory as the table `pending` counts them."""

from collections.abc import Iterable
from datetime import datetime

from checkpoints.reading.reader import OpenChanges
from checkpoints.times import time_of
from streaming.core.state.open_transactions import OpenTransactions
from streaming.core.state.pending import Context


def open_changes(opened: OpenTransactions) -> dict[tuple[int, str], OpenChanges]:
    """(rid, pending | waiting) -> the replica's changes in that state.

    The hub may evict some meanwhile: each dictionary is copied in one step before it is walked.
    """
    committed, evicted = opened.lists.committed.copy(), opened.evicted.copy()
    counts: dict[tuple[int, str], int] = {}
    oldest: dict[tuple[int, str], Context] = {}
    members = opened.lists.members.copy()
    for context, csns in members.items():
        where = context[1], "waiting" if context in committed else "pending"
        absent = evicted[context].absent if context in evicted else 0
        counts[where] = counts.get(where, 0) + len(csns) + absent
        oldest.setdefault(where, context)
    return {
        where: OpenChanges(count, _received(opened, members[oldest[where]]), oldest[where][0])
        for where, count in counts.items()
    }


def _received(opened: OpenTransactions, csns: Iterable[str]) -> datetime | None:
    """When the first of these changes came that is in memory."""
    found = [one.time_ms for csn in csns if (one := opened.changes.get(csn)) is not None]
    return time_of(min(found)) if found else None
