"""When a hub looks for what it may purge, and when it deletes it."""

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from checkpoints.commit.epochs import Checkpoint
from checkpoints.commit.faults import FaultPoint
from checkpoints.commit.protocol import create_state, open_ledger
from checkpoints.maintenance.purge import PurgedState
from checkpoints.reading.purgeable import PurgeRequest
from checkpoints.store import StateStore
from streaming.core.model.command import Command, CommandName
from streaming.core.retention.purge import Purge
from streaming.core.state.hub_state import HubState
from streaming.core.state.topology import Topology
from streaming.hub.purging import Purging, RetentionTimes

DAY_MS = 86_400_000
TIMES = RetentionTimes(DAY_MS, 2 * DAY_MS)
STATE = HubState(1, "00000001000000000000", batch=9, hub_epoch=9)
FOUND = Purge(4, 5, {}, {})
PIN = Command(1, CommandName.PIN, "")


@dataclass(slots=True)
class WorkBeside:
    """Work that is done when the test says so."""

    finding: list[tuple[PurgeRequest, "Future[Purge | None]"]] = field(default_factory=list)
    deleting: list[tuple[PurgedState, "Future[bool]"]] = field(default_factory=list)

    def find_purge(self, asked: PurgeRequest) -> "Future[Purge | None]":
        """Note what is asked."""
        self.finding.append((asked, Future()))
        return self.finding[-1][1]

    def purge(self, purged: PurgedState) -> "Future[bool]":
        """Note what is purged."""
        self.deleting.append((purged, Future()))
        return self.deleting[-1][1]


Started = tuple[Purging, WorkBeside, list[FaultPoint]]


@pytest.fixture
def hub(tmp_path: Path) -> Started:
    """A hub that has just started, its work, and the points that it came to."""
    store, passed = StateStore(tmp_path / "state"), list[FaultPoint]()
    create_state(store, Checkpoint(HubState(1, "00000001000000000000"), {}, {}, 1), "hub")
    work = WorkBeside()
    return Purging(open_ledger(store, "hub", passed.append), work), work, passed


def follow(purging: Purging, state: HubState, now_ms: int, rows_epoch: int = 0) -> None:
    """What a hub does behind each batch, and at rest."""
    purging.follow(state, rows_epoch, Topology({}, {}), TIMES, now_ms)


def test_what_is_old_enough_is_looked_for_now_and_then(hub: Started) -> None:
    """A look reads tables; it is worth a part of what is kept."""
    purging, work, _ = hub

    follow(purging, STATE, 10 * DAY_MS)
    follow(purging, STATE, 10 * DAY_MS + 1)
    work.finding[0][1].set_result(None)
    follow(purging, STATE, 10 * DAY_MS + 2)
    follow(purging, STATE, 10 * DAY_MS + DAY_MS // 24)

    assert [one.before_ms for one, _ in work.finding] == [9 * DAY_MS, 9 * DAY_MS + DAY_MS // 24]
    assert work.finding[0][0].limit == 9


def test_a_plan_holds_what_was_found_until_it_is_committed(hub: Started) -> None:
    """The next look says what is left."""
    purging, work, _ = hub
    follow(purging, STATE, DAY_MS)
    work.finding[0][1].set_result(FOUND)
    follow(purging, STATE, DAY_MS + 1)

    planned = purging.planned(())
    purging.committed(())

    assert (planned, purging.planned(())) == (FOUND, None)


@pytest.mark.parametrize("is_found", [False, True])
def test_a_new_pin_comes_before_what_was_found_without_it(hub: Started, *, is_found: bool) -> None:
    """The pin is taken by the next plan; what was looked for before it may be what it keeps."""
    purging, work, _ = hub
    follow(purging, STATE, DAY_MS)
    if is_found:
        work.finding[0][1].set_result(FOUND)
        follow(purging, STATE, DAY_MS + 1)

    with_pin = purging.planned((PIN,))
    purging.committed((PIN,))
    if not is_found:
        work.finding[0][1].set_result(FOUND)
    follow(purging, STATE, DAY_MS + 2)

    assert (with_pin, purging.planned(())) == (None, None)


def test_what_a_commit_says_is_deleted_once_and_by_each_hub_that_starts(hub: Started) -> None:
    """A hub that dies in between leaves all of it, or a part."""
    purging, work, passed = hub
    purged = replace(STATE, purge_epoch=4, purge_batch=5)

    follow(purging, purged, 10 * DAY_MS)
    follow(purging, purged, 10 * DAY_MS)
    before = [*passed]
    work.deleting[0][1].set_result(True)
    follow(purging, purged, 10 * DAY_MS)
    follow(purging, purged, 10 * DAY_MS)

    assert before == [FaultPoint.BEFORE_PURGE]
    assert passed == [FaultPoint.BEFORE_PURGE, FaultPoint.AFTER_PURGE]
    assert [one.conflicts_before_ms for one, _ in work.deleting] == [8 * DAY_MS]


def test_what_goes_by_its_own_age_needs_no_purge(hub: Started) -> None:
    """Conflicts get old at a hub that has no batch."""
    purging, work, _ = hub
    purged = replace(STATE, purge_epoch=4, purge_batch=5)
    every_ms = TIMES.delete_every_ms
    follow(purging, STATE, 10 * DAY_MS)

    follow(purging, purged, 10 * DAY_MS)
    for later_ms in (0, every_ms - 1, every_ms, every_ms + 1):
        if not work.deleting[-1][1].done():
            work.deleting[-1][1].set_result(True)
        follow(purging, purged, 10 * DAY_MS + later_ms)
        follow(purging, purged, 10 * DAY_MS + later_ms)

    began_ms = [one.conflicts_before_ms - 8 * DAY_MS for one, _ in work.deleting]
    assert began_ms == [0, every_ms]


def test_a_look_says_whether_a_batch_would_note_how_far_rows_has_come(hub: Started) -> None:
    """Without a batch no commit says so, and what `rows` has is not purged."""
    purging, work, _ = hub

    follow(purging, STATE, DAY_MS, rows_epoch=0)
    work.finding[0][1].set_result(None)
    follow(purging, STATE, DAY_MS + 1, rows_epoch=3)
    follow(purging, STATE, 2 * DAY_MS, rows_epoch=3)

    assert [one.notes_rows for one, _ in work.finding] == [False, True]
    assert [one.last_ms for one, _ in work.finding] == [purging.ledger.last.at_ms] * 2


def test_a_hub_that_ends_with_its_input_waits_for_its_purge(hub: Started) -> None:
    """One that is started every hour is at work for seconds: what it looks for would be lost."""
    purging, work, passed = hub
    follow(purging, STATE, DAY_MS)
    threading.Timer(0.05, lambda: work.finding[0][1].set_result(FOUND)).start()

    has_found = purging.found_at_end(STATE, 0)
    follow(purging, replace(STATE, purge_epoch=4, purge_batch=5), DAY_MS)
    threading.Timer(0.05, lambda: work.deleting[0][1].set_result(True)).start()
    purging.finish()

    assert has_found
    assert (purging.deleted, passed[-1]) == (5, FaultPoint.AFTER_PURGE)


def test_what_a_command_reads_is_deleted_once_it_is_done(hub: Started) -> None:
    """It is asked again now and then: a backup may take hours."""
    purging, work, passed = hub
    purged = replace(STATE, purge_epoch=4, purge_batch=5)
    follow(purging, purged, 10 * DAY_MS)
    work.deleting[0][1].set_result(False)

    for later_ms in (1, 2, TIMES.look_every_ms, TIMES.look_every_ms + 1):
        follow(purging, purged, 10 * DAY_MS + later_ms)
    asked_again = len(work.deleting)
    work.deleting[1][1].set_result(True)
    follow(purging, purged, 10 * DAY_MS + TIMES.look_every_ms + 2)

    assert asked_again == 2
    assert purging.deleted == 5
    assert passed == [FaultPoint.BEFORE_PURGE] * 2 + [FaultPoint.AFTER_PURGE]


def test_a_hub_that_ends_notes_how_far_rows_has_come(hub: Started) -> None:
    """The next one would bring it there again, and nothing that it has could be purged."""
    purging, _, _ = hub

    assert not purging.found_at_end(STATE, 0)
    assert purging.found_at_end(replace(STATE, purge_epoch=4, purge_batch=5), 9)
    assert purging.planned(()) == Purge(4, 5, {}, {})


def test_more_is_looked_for_once_the_last_purge_is_deleted(hub: Started) -> None:
    """A hub that starts deletes first; one that ends at once must wait for that to find more."""
    purging, work, _ = hub
    purged = replace(STATE, purge_epoch=4, purge_batch=5)

    follow(purging, purged, DAY_MS)
    looked_first = len(work.finding)
    work.deleting[0][1].set_result(True)
    purging.finish()
    follow(purging, purged, DAY_MS)

    assert (looked_first, len(work.finding)) == (0, 1)
