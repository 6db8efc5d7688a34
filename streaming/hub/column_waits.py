"""When a hub looks whether something that waits for a column may go on: after it was quiet.

What is written meanwhile on such a row, with the column, stands in place of what waits.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from checkpoints.commit.epochs import Checkpoint
from streaming.core.text.wording import as_count

LOG = logging.getLogger("slackwater")

_COUNTED = ("quarantined", "unknown_commits")
"""What of the totals says that another change may wait, or may go on."""


_REST = 20
"""A look costs one part in so many of the time, whatever is in quarantine."""


@dataclass(slots=True)
class ColumnWaits:
    """The looks of one service; `order(at_ms)` orders what may go on, and says how much it is.

    `quiet_ms`: it looks so long after the service came up, and after something was quarantined,
    and later where a look takes long.
    """

    order: Callable[[int], int]
    quiet_ms: int
    _seen: tuple[int, ...] | None = None
    _due_ms: int | None = None
    _took_ms: int = 0

    def follow(self, last: Checkpoint, now_ms: int) -> None:
        """Look if that is due; `last`: the last commit."""
        totals = tuple(last.totals.get(name, 0) for name in _COUNTED)
        wait_ms = max(self.quiet_ms, _REST * self._took_ms)
        if totals != self._seen:
            self._seen, self._due_ms = totals, self._due_ms or now_ms + wait_ms
        if self._due_ms is None or now_ms < self._due_ms:
            return
        self._due_ms = now_ms + wait_ms if self.look(last, now_ms) else None  # there may be more

    def look(self, last: Checkpoint, now_ms: int) -> int:
        """Order what may go on; how many changes that is."""
        if not last.totals.get(_COUNTED[0], 0):
            return 0
        began_s = time.monotonic()
        ordered = self.order(now_ms)
        self._took_ms = round((time.monotonic() - began_s) * 1_000)
        if ordered:
            what = as_count(ordered, "change")
            LOG.info("%s that waited for a column: released, as the configuration has it", what)
        return ordered
