"""What a batch is decided with: its hub epoch, its pages, and what could not be judged."""

from collections.abc import Iterable, Sequence

from streaming.core.batch.left_out import uncarried_rows
from streaming.core.batch.sending import LogEntry
from streaming.core.conflict.judge import Judged
from streaming.core.intake.intake import Intake
from streaming.core.model.change import RowKey
from streaming.core.records.arrival import Quarantined, quarantined_change
from streaming.core.tracking.resync import ResyncPage


def next_epoch(intake: Intake, pages: Sequence[ResyncPage] = (), *, judged: bool = False) -> int:
    """Return the hub epoch of this batch: a new one if it judges, answers a hello or refreshes."""
    rises = bool(judged or intake.eligible or intake.hellos or intake.repairs or pages)
    return intake.state.hub_epoch + rises


def still_due(intake: Intake, pages: Iterable[ResyncPage]) -> list[ResyncPage]:
    """Return the planned pages whose resync goes on; a record of the batch may have ended it."""
    return [page for page in pages if intake.state.takes_page(intake.agreements[page.agreement])]


def listed_in(page: ResyncPage, intake: Intake) -> frozenset[RowKey]:
    """Return the rows that are uncarried at the page's consumer, those of this batch included.

    A row that it refused it has not seen, so that is sent again.
    """
    consumer = intake.agreements[page.agreement].consumer
    mine = uncarried_rows(intake.quarantined, intake.topology.tables)
    new = (row for rid, row in mine if rid == consumer)
    return page.uncarried.union(new) - intake.refused.of(consumer).keys()


def covers_before(page: ResyncPage, intake: Intake) -> int:
    """Return what the page's consumer had before its resync."""
    resync = intake.agreements[page.agreement].resync
    return resync.held.covers if resync else 0


def failed(entries: Iterable[LogEntry]) -> list[Quarantined]:
    """Return the changes whose judging failed, for quarantine."""
    return [
        quarantined_change(entry.arrived, entry.failure.reason, entry.failure.detail)
        for entry in entries
        if isinstance(entry, Judged) and entry.failure is not None
    ]
