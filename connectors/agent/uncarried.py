"""The rows that are not replicated, because they hold a value that no replica can take.

The write stands in this database, the hub quarantines its change, and the agent reports the row
until a later change of it can be carried.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from connectors.agent.contract import JournalEntry
from streaming.core.model.change import Change, Op
from streaming.core.model.wording import as_count

ROWS_MAX = 10_000
"""How many rows are remembered; the quarantine has all of them."""
LINES_MAX = 10
"""How many rows are logged one by one between two reminders."""
REMINDER_S = 60.0
"""How often the log repeats how many rows are not replicated."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class UncarriedRows:
    """The rows whose last published change was one of these, with what to do."""

    clock_s: Callable[[], float] = time.monotonic
    rows: dict[tuple[str, str | None], str] = field(default_factory=dict)
    lines: int = 0
    reminded_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.reminded_s = self.clock_s()

    def add_published(self, entries: Iterable[JournalEntry]) -> None:
        """Log the changes that no replica can take; forget the rows that were corrected."""
        for entry in entries:
            if not isinstance(entry.record, Change):
                continue
            if entry.faults and entry.record.op is not Op.DELETE:
                self._add(entry.record, "; ".join(entry.faults))
            elif self.rows:
                self.rows.pop((entry.record.table, entry.record.key), None)

    def remind(self) -> None:
        """Log every minute how many rows are not replicated, and one of them."""
        now_s = self.clock_s()
        if not self.rows or now_s - self.reminded_s < REMINDER_S:
            return
        self.reminded_s, self.lines = now_s, 0
        (table, key), text = next(iter(self.rows.items()))
        log.error(
            "not replicated until corrected: %s, for example table %s row %s: %s",
            as_count(len(self.rows), "row"),
            table,
            key,
            text,
        )

    def _add(self, change: Change, text: str) -> None:
        if len(self.rows) < ROWS_MAX:
            self.rows[change.table, change.key] = text
        self.lines += 1
        if self.lines <= LINES_MAX:
            log.error(
                "table %s row %s is written here and not replicated until it is corrected: %s"
                " (`slackwater quarantine list` has the change %s)",
                change.table,
                change.key,
                text,
                change.csn,
            )
