"""Upkeep beside the batches: materialize `rows`, compact tables, remove old files and logs."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from checkpoints.commit.faults import FaultPoint
from checkpoints.commit.protocol import Ledger
from checkpoints.tables import TableName
from streaming.core.state.hub_state import HubState

TIDY_EVERY_BATCHES = 20


@dataclass(frozen=True, slots=True)
class MaterializeEvery:
    """How far `rows` may lag: by so many hub epochs, or for so long."""

    epochs: int
    seconds: int


class ForgettingWindow(Protocol):
    """The recently written rows, of which the oldest may be forgotten."""

    edge: int
    """A row that it does not hold was last touched at or below this hub epoch."""

    def __len__(self) -> int:
        """How many rows it holds."""

    def advance(self, edge: int) -> None:
        """Forget the rows that nothing touched above the new edge."""

    def shrink(self, size: int) -> None:
        """Forget the oldest hub epochs until no more than so many rows are left."""


class MaintenanceTasks(Protocol):
    """The tasks, run in the order of their calls; see `checkpoints/maintenance/background.py`."""

    def materialize(self, after: int, to: int) -> "Future[None]":
        """Bring `rows` from one hub epoch up to another."""

    def maintain(self) -> "Future[None]":
        """Compact tables and remove old logs."""

    def vacuum(self) -> "Future[None]":
        """Remove files that no version needs."""


@dataclass(slots=True)
class Upkeep:
    """Starts the maintenance tasks and records when they are done.

    `rows_epoch`: the hub epoch up to which `rows` is materialized. `lags_since_ms`: when it was
    first seen to lag.
    """

    ledger: Ledger
    maintenance: MaintenanceTasks
    rows_epoch: int
    lags_since_ms: int | None = None
    materializing: tuple[int, Future[None]] | None = None
    chores: list[Future[None]] = field(default_factory=list)

    def rows(
        self,
        state: HubState,
        window: ForgettingWindow,
        every: MaterializeEvery,
        window_rows: int,
        now_ms: int,
    ) -> None:
        """Materialize `rows` when it lags by so much or for so long, and shrink the window.

        Batches continue meanwhile. The window drops rows that all replicas have reflected. Beyond
        `window_rows` it drops the oldest, which are then looked up in `rows` and the changelog.
        """
        behind = state.hub_epoch - self.rows_epoch
        since_ms = now_ms if self.lags_since_ms is None else self.lags_since_ms
        self.lags_since_ms = since_ms if behind else None
        is_late = behind >= every.epochs or now_ms - since_ms >= every.seconds * 1_000
        is_due = behind and (is_late or len(window) > window_rows)
        if self.materializing is None and is_due:
            self.lags_since_ms = None
            work = self.maintenance.materialize(self.rows_epoch, state.hub_epoch)
            self.materializing = state.hub_epoch, work
        self.materialized(wait=False)
        self.bound(window, state, window_rows)

    def bound(self, window: ForgettingWindow, state: HubState, window_rows: int) -> None:
        """Drop the rows from the window that may be looked up instead."""
        edge = min(self.rows_epoch, state.smallest_mre)
        if edge > window.edge:
            window.advance(edge)
        window.shrink(window_rows)

    def materialized(self, *, wait: bool) -> None:
        """Record that `rows` is materialized; the next batch writes it to `epochs`."""
        if self.materializing is None:
            return
        to, work = self.materializing
        if wait or work.done():
            work.result()
            self.ledger.reach(FaultPoint.AFTER_ROWS)
            self.ledger.store.refreshed(TableName.ROWS)
            self.rows_epoch, self.materializing = to, None

    def maintain(self, batch: int, *, is_new_day: bool) -> None:
        """Keep files and logs few; tables that were seen to are opened anew."""
        if self.chores and all(chore.done() for chore in self.chores):
            for chore in self.chores:
                chore.result()
            self.chores = []
            self.ledger.reopen()
        if not self.chores and batch % TIDY_EVERY_BATCHES == 0:
            self.chores.append(self.maintenance.maintain())
        if is_new_day:
            self.chores.append(self.maintenance.vacuum())
