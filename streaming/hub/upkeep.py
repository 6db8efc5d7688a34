"""What is done beside the batches: `rows` is brought up to date, files and logs are kept few."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from checkpoints.commit import Ledger
from checkpoints.faults import Point
from checkpoints.tables import TableName
from streaming.core.conflict.window import Window
from streaming.core.model.state import HubState

TIDY_EVERY_BATCHES = 20


class MaintenanceTasks(Protocol):
    """The work itself, in the order in which it is asked for; `checkpoints/maintenance.py`."""

    def materialize(self, after: int, to: int) -> "Future[None]":
        """Bring `rows` from one hub epoch up to another."""

    def tidy(self) -> "Future[None]":
        """Keep files and logs few."""

    def vacuum(self) -> "Future[None]":
        """Remove files that nobody needs."""


@dataclass(slots=True)
class Upkeep:
    """When which work is started, and what the hub takes note of when it is done.

    `rows_epoch`: the hub epoch that `rows` is known to be up to date with.
    """

    ledger: Ledger
    maintenance: MaintenanceTasks
    rows_epoch: int
    materializing: tuple[int, Future[None]] | None = None
    chores: list[Future[None]] = field(default_factory=list)

    def rows(self, state: HubState, window: Window, every_epochs: int, window_rows: int) -> None:
        """Keep `rows` near the present; let the window forget what all have seen.

        The batches go on while `rows` is brought up to date. A window that has more rows than it
        may have forgets the oldest: they are looked up in `rows` and the changelog behind it.
        """
        behind = state.hub_epoch - self.rows_epoch
        full = len(window) > window_rows
        if self.materializing is None and (behind >= every_epochs or (full and behind)):
            work = self.maintenance.materialize(self.rows_epoch, state.hub_epoch)
            self.materializing = state.hub_epoch, work
        self.materialized(wait=False)
        edge = min(self.rows_epoch, state.smallest_mre)
        if edge > window.edge:
            window.advance(edge)
        window.shrink(window_rows)

    def materialized(self, *, wait: bool) -> None:
        """Take note of it when `rows` is up to date; `epochs` says so with the next batch."""
        if self.materializing is None:
            return
        to, work = self.materializing
        if wait or work.done():
            work.result()
            self.ledger.at(Point.AFTER_ROWS)
            self.ledger.store.refreshed(TableName.ROWS)
            self.rows_epoch, self.materializing = to, None

    def tidy(self, batch: int, *, is_new_day: bool) -> None:
        """Keep files and logs few; tables that were seen to are opened anew."""
        if self.chores and all(chore.done() for chore in self.chores):
            for chore in self.chores:
                chore.result()
            self.chores = []
            self.ledger.reopen()
        if not self.chores and batch % TIDY_EVERY_BATCHES == 0:
            self.chores.append(self.maintenance.tidy())
        if is_new_day:
            self.chores.append(self.maintenance.vacuum())
