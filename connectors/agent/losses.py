"""What the replica's user would not notice: changes lost, quarantined or refused, rows saved.

The hub's batch says so without a record of its own: a refresh carries its cause. A row that holds a
value that no replica can take stands in this database, the hub quarantines its change, and the
store lists it until a later change of it can be carried.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from connectors.agent.contract import AppliedBatch, HeldLog, JournalEntry, KeptRows
from connectors.agent.own_topic import OwnTopic
from streaming.core.delivery.consumer import ApplyBatch
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import parse
from streaming.core.records.record import Item, ItemType, Reason
from streaming.core.text.wording import as_bytes, as_count

NAMED = 5
"""How many refused items of one batch are named, at most."""
LINES_MAX = 10
"""How many rows are logged one by one between two reminders."""
REMINDER_S = 60.0
"""How often the log repeats how many rows are not replicated."""

log = logging.getLogger(__name__)

_QUARANTINED = {reason.value for reason in Reason}


def lost_text(past: OwnTopic) -> str:
    """Say that the database lacks changes that its own topic holds, and what follows.

    Those that were reported count too: the same backup may have been restored again.
    """
    since = datetime.fromtimestamp(parse(past.first_reported or past.first_missing).time_s, UTC)
    lost = as_count(past.missing + past.reported, "change")
    return (
        f"the database lacks {lost} that it published, the first of"
        f" {since:%Y-%m-%d %H:%M:%S} UTC: it was restored from an older copy, or made anew; the hub"
        " sends them back; what is written here before it has caught up is in conflict (`floor`)"
    )


def moved_text(before: str, agreement: str) -> str:
    """Say that what others write comes by another agreement from here on, and what follows."""
    return (
        f"what others write came by agreement {before}, and comes by {agreement} from here on: the"
        " hub copies everything to this database, and what is written here before it has caught up"
        " is in conflict (`floor`)"
    )


def stranded_text(past: OwnTopic) -> str:
    """Say that the hub did not take records of this database, and what follows."""
    return (
        f"{as_count(len(past.stranded), 'record')} of this database came after the hello of another"
        " agent of this replica, so the hub did not take them: they are published again; if another"
        " agent runs under this name (on a copy of the database file?), stop it"
    )


def log_losses(batch: ApplyBatch, applied: AppliedBatch) -> None:
    """Log what a batch brought of quarantined changes, and what applying it refused and saved."""
    back = [i for i in batch.rows if i.type is ItemType.REFRESH and i.cause in _QUARANTINED]
    if back:
        log.warning(_quarantined_text(back))
    for refused in applied.refused[:NAMED]:
        log.warning(
            "the database refuses row %s %s (%s): %s",
            *(refused.table, refused.key, refused.code, refused.text),
        )
    if len(applied.refused) > NAMED:
        log.warning(
            "the database refuses %d rows of hub epoch %d in all",
            *(len(applied.refused), applied.refused[0].hub_epoch),
        )
    shown = f"`{applied.saved_shown_by}` shows what it held"
    for saved in applied.saved[:NAMED]:
        log.error(
            "row %s %s is overwritten, and was nowhere else (%s): %s",
            *(saved.table, saved.key, saved.why, shown),
        )
    if len(applied.saved) > NAMED:
        log.error(
            "%d rows in all were nowhere else and are overwritten: %s", len(applied.saved), shown
        )


def _quarantined_text(back: Sequence[Item]) -> str:
    counts = Counter(str(item.cause) for item in back)
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
    rows = f"row {back[0].table} {back[0].key}"
    if len(back) > 1:
        rows = f"{len(back)} rows, the first is {back[0].table} {back[0].key}"
    return (
        f"the hub quarantined changes of this replica ({reasons}) and sets their rows back to its"
        f" own: {rows}; `slackwater quarantine list` shows them"
    )


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


def held_text(held: HeldLog) -> str:
    """What to say when a database's server keeps much of its log."""
    room = "" if held.room_bytes is None else f", and removes it in {as_bytes(held.room_bytes)}"
    return (
        f"the database's server keeps {as_bytes(held.bytes)} of its log for this agent{room}; what"
        f" holds it: {held.by} (docs/runbook.md, A server keeps its log)"
    )
