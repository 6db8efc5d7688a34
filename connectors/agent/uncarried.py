"""Says which rows are not replicated, because they hold a value that no replica can take.

The write stands in this database, the hub quarantines its change, and the store lists the row
until a later change of it can be carried.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from connectors.agent.contract import JournalEntry, KeptRows
from streaming.core.model.change import Change, Op
from streaming.core.text.wording import as_count

LINES_MAX = 10
"""How many rows are logged one by one between two reminders."""
REMINDER_S = 60.0
"""How often the log repeats how many rows are not replicated."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class UncarriedLog:
    """What the agent says of such rows: at once when it publishes one, and every minute."""

    clock_s: Callable[[], float] = time.monotonic
    lines: int = 0
    reminded_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.reminded_s = self.clock_s() - REMINDER_S  # what an earlier run published is said now

    def add_published(self, entries: Iterable[JournalEntry]) -> None:
        """Log the changes that no replica can take."""
        for entry in entries:
            change = entry.record
            if not isinstance(change, Change) or not entry.faults or change.op is Op.DELETE:
                continue
            self.lines += 1
            if self.lines <= LINES_MAX:
                self.reminded_s = self.clock_s()
                log.error(
                    "table %s row %s is written here and not replicated until it is corrected: %s"
                    " (`slackwater quarantine list` has the change %s)",
                    change.table,
                    change.key,
                    "; ".join(entry.faults),
                    change.csn,
                )

    def remind(self, kept: KeptRows) -> None:
        """Log every minute how many rows are not replicated, and one of them."""
        now_s = self.clock_s()
        if kept.first is None or now_s - self.reminded_s < REMINDER_S:
            return
        self.reminded_s, self.lines = now_s, 0
        log.error(
            "not replicated until corrected: %s, for example table %s row %s: %s",
            as_count(kept.uncarried, "row"),
            kept.first.table,
            kept.first.key,
            kept.first.faults,
        )
