"""Purging beside the batches: what may go is looked for, and deleted once a commit says so."""

from collections.abc import Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Protocol

from checkpoints.commit.faults import FaultPoint
from checkpoints.commit.protocol import Ledger
from checkpoints.maintenance.purge import PurgedState
from checkpoints.reading.purgeable import PurgeRequest
from streaming.core.model.command import Command, CommandName
from streaming.core.retention.hold import purge_limit
from streaming.core.retention.purge import Purge, purged_up_to
from streaming.core.state.hub_state import HubState
from streaming.core.state.topology import MAX_AWAY_MS, Topology

_LOOKS = 24
"""How often it is looked for in the time for which history is kept."""
_LOOK_MIN_MS = 1_000
_LOOK_MAX_MS = 3_600_000
_DELETE_MAX_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class RetentionTimes:
    """For how long history, and conflicts, are kept."""

    keep_ms: int
    conflicts_ms: int

    @property
    def look_every_ms(self) -> int:
        """How often something to purge is looked for."""
        return min(max(self.keep_ms // _LOOKS, _LOOK_MIN_MS), _LOOK_MAX_MS)

    @property
    def delete_every_ms(self) -> int:
        """How often is deleted what goes by its own age, if no purge does it meanwhile."""
        return min(max(self.conflicts_ms // _LOOKS, _LOOK_MIN_MS), _DELETE_MAX_MS)


KEPT_A_WEEK = RetentionTimes(MAX_AWAY_MS, MAX_AWAY_MS)


class PurgeTasks(Protocol):
    """What is done beside the batches; see `checkpoints/maintenance/background.py`."""

    def find_purge(self, asked: PurgeRequest) -> "Future[Purge | None]":
        """Find what may be purged; None: nothing."""

    def purge(self, purged: PurgedState) -> "Future[bool]":
        """Delete what the purge of a committed state names; False: not while a command reads it."""


@dataclass(slots=True)
class Purging:
    """Looks for what may be purged, and has it deleted.

    `found`: for the next plan. `deleted`: the `purge_batch` up to which the tables are purged; a
    hub that starts does not know, and does it again; `deleted_ms`: when that was begun last.
    `delayed_ms`: until when it waits because a command reads what goes. `looked_ms`: when it was
    looked for last. `is_stale`: what is being looked for may be what a pin keeps.
    """

    ledger: Ledger
    tasks: PurgeTasks
    found: Purge | None = None
    deleted: int = 0
    deleted_ms: int = 0
    looked_ms: int = 0
    is_stale: bool = False
    finding: "Future[Purge | None] | None" = None
    deleting: tuple[int, "Future[bool]"] | None = None
    delayed_ms: int = 0

    def planned(self, commands: Iterable[Command]) -> Purge | None:
        """What a plan with these commands purges: nothing beside a new pin."""
        return None if _pins(commands) else self.found

    def committed(self, commands: Iterable[Command]) -> None:
        """Forget what was found: it is purged, or somebody needs it now."""
        self.is_stale |= _pins(commands)
        self.found = None

    def follow(
        self,
        state: HubState,
        rows_epoch: int,
        topology: Topology,
        times: RetentionTimes,
        now_ms: int,
    ) -> None:
        """Delete what the state's purge names, and look for more if that is due.

        `rows_epoch`: the hub epoch up to which `rows` has come.
        """
        self._delete(state, times, now_ms)
        if self.finding is not None:
            self._take_found(self.finding)
        elif self.deleting is None and now_ms - self.looked_ms >= times.look_every_ms:
            self.looked_ms, self.is_stale = now_ms, False
            last = self.ledger.last
            asked = PurgeRequest(
                state,
                purge_limit(state, now_ms, topology.max_away_ms),
                now_ms - times.keep_ms,
                {name: table.dataset for name, table in topology.tables.items()},
                last_ms=last.at_ms,
                notes_rows=rows_epoch > last.rows_epoch,
            )
            self.finding = self.tasks.find_purge(asked)

    def found_at_end(self, state: HubState, rows_epoch: int) -> bool:
        """Return whether a hub that ends has a batch to plan, once the look under way is over.

        One that notes how far `rows` has come is worth it: the next hub need not bring it so far
        again, and what `rows` has can be purged.
        """
        if self.finding is not None:
            wait([self.finding])
            self._take_found(self.finding)
        if self.found is None and rows_epoch > self.ledger.last.rows_epoch:
            self.found = Purge(state.purge_epoch, state.purge_batch, {}, {})
        return self.found is not None

    def finish(self) -> None:
        """Wait until what is being deleted is."""
        if self.deleting is not None:
            wait([self.deleting[1]])
            self._take_deleted(*self.deleting)

    def _take_found(self, finding: "Future[Purge | None]") -> None:
        if finding.done():
            found = finding.result()
            self.found = None if self.is_stale else found
            self.finding = None

    def _delete(self, state: HubState, times: RetentionTimes, now_ms: int) -> None:
        if self.deleting is not None:
            if not self._take_deleted(*self.deleting):
                self.delayed_ms = now_ms + times.look_every_ms
            return
        if now_ms < self.delayed_ms:
            return
        is_due = now_ms - self.deleted_ms >= times.delete_every_ms
        if state.purge_batch > self.deleted or (state.purge_batch and is_due):
            self.ledger.reach(FaultPoint.BEFORE_PURGE)
            purged = PurgedState(state, purged_up_to(state), now_ms - times.conflicts_ms)
            self.deleting = state.purge_batch, self.tasks.purge(purged)
            self.deleted_ms = now_ms

    def _take_deleted(self, batch: int, work: "Future[bool]") -> bool:
        """Take over what was deleted; False: nothing was, for a command reads it."""
        if not work.done():
            return True
        self.deleting = None
        if not work.result():
            return False
        self.ledger.reach(FaultPoint.AFTER_PURGE)
        self.ledger.reopen()
        self.deleted = batch
        return True


def _pins(commands: Iterable[Command]) -> bool:
    return any(one.name is CommandName.PIN for one in commands)
