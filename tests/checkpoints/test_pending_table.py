"""What table `pending` gives back is what a hub had open, in memory or not."""

from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints import pending
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.intake.eviction import evict
from streaming.core.intake.intake import Intake
from streaming.core.records.record import Abort, Commit, Record
from streaming.core.state.hub_state import HubState
from streaming.core.state.open_transactions import OpenTransactions
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import RULES, Speaker, fresh_state

MANY, FEW = 1_000, 4
LARGE = csn(10, 1), 1


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    """An empty state."""
    made = StateStore(tmp_path / "state")
    made.create()
    return made


def batch(
    store: StateStore, state: HubState, *records: Record, limit: int = MANY, hello: bool = False
) -> HubState:
    """The state behind a batch of these records of replica 1, which is in the table."""
    speaker = Speaker(session="1-1")
    speaker.received = [speaker.quote(None)] * (100 * state.batch)
    intake = Intake(state, RULES)
    if hello:
        for received in Speaker().hello():
            intake.take(received)
    for received in speaker.send(*records):
        intake.take(received)
    number = state.batch + 1
    rows = pending.moves(store, state.open, intake.open, intake.ended, number)
    intake.forget_ended()
    store.append_once(TableName.PENDING, rows, "pending", number)
    evict(intake.open, intake.replica_states(), limit)
    return replace(
        state, batch=number, replicas=intake.replica_states(), ruvs=intake.ruvs, open=intake.open
    )


def loaded(store: StateStore, state: HubState, limit: int) -> OpenTransactions:
    """What the next hub finds."""
    return pending.load(store, state.batch, state.largest, state.replicas, limit)


def opened(store: StateStore, limit: int) -> HubState:
    """An open transaction of ten changes over two batches, and five plain ones behind it."""
    state = batch(
        store, fresh_state(), *(change(n, tx=10) for n in range(10, 15)), limit=limit, hello=True
    )
    rest = [change(n, tx=10) for n in range(15, 20)]
    return batch(store, state, *rest, *(change(n) for n in range(20, 25)), limit=limit)


@pytest.mark.parametrize("limit", [MANY, FEW])
def test_a_hub_that_starts_finds_what_was_open(store: StateStore, limit: int) -> None:
    """Whether it was in memory or not."""
    state = opened(store, limit)

    found = loaded(store, state, limit)

    assert found.changes == state.open.changes
    assert found.lists == state.open.lists
    assert found.evicted == state.open.evicted
    assert found.on_disk == state.open.on_disk


def test_a_larger_limit_brings_all_back_to_memory(store: StateStore) -> None:
    """The table has all that memory left out, images too."""
    state = opened(store, FEW)

    found = loaded(store, state, MANY)

    assert len(found.changes) == 15
    assert found.evicted == {}
    assert all(one.change.after for one in found.changes.values())


def test_evicted_transactions_are_read_back_with_their_images(store: StateStore) -> None:
    """A merged one has what lies in its range and is of no other."""
    state = opened(store, FEW)
    merged = csn(24, 1), 1
    assert state.open.evicted[merged].merged

    large = pending.on_disk(store, state.open, [LARGE], state.batch)
    waiting = pending.on_disk(store, state.open, [merged], state.batch)

    assert large["csn"].to_pylist() == [csn(n, 1) for n in range(10, 20)]
    assert waiting["csn"].to_pylist() == [csn(n, 1) for n in range(20, 25)]
    assert None not in large["after"].to_pylist()


def test_a_commit_that_must_wait_is_remembered_for_all_changes(store: StateStore) -> None:
    """Else the next hub would let some of them wait for a commit that came."""
    state = batch(store, fresh_state(), change(9, tx=9), hello=True)
    state = batch(store, state, *(change(n, tx=10) for n in range(10, 20)), limit=FEW)
    state = batch(store, state, Commit(csn(10, 1)), limit=FEW)

    assert loaded(store, state, MANY).lists.committed == {LARGE}
    assert len(pending.on_disk(store, state.open, [LARGE], state.batch)) == 10


@pytest.mark.parametrize("limit", [MANY, FEW])
@pytest.mark.parametrize("end", [Commit(csn(10, 1)), Abort(csn(10, 1))])
def test_nothing_is_open_when_all_has_ended(store: StateStore, limit: int, end: Record) -> None:
    """The last row of each change says so."""
    state = batch(store, opened(store, limit), end, limit=limit)

    found = loaded(store, state, limit)

    assert found.changes == {}
    assert found.lists.members == {}
    assert found.ended == state.open.ended
    assert found.ended_csns == state.open.ended_csns
    assert bool(found.ended) == isinstance(end, Abort)


def test_the_rows_of_a_large_ended_transaction_are_found_when_they_are_needed(
    store: StateStore,
) -> None:
    """A commit that comes after all repairs them."""
    state = batch(store, opened(store, FEW), Abort(csn(10, 1)), limit=FEW)
    assert state.open.ended[LARGE].rows == ()

    again = pending.restored(store, state.open, [LARGE], state.batch)

    assert again.ended[LARGE].rows == (("t", '{"k":"k"}'),)
    assert state.open.ended[LARGE].rows == ()


def test_a_change_on_disk_names_its_transaction(store: StateStore) -> None:
    """An operator may abort by any CSN of it."""
    state = opened(store, FEW)

    assert pending.transaction_of(store, 1, csn(12, 1), state.batch) == csn(10, 1)
    assert pending.transaction_of(store, 1, csn(22, 1), state.batch) == csn(22, 1)
    assert pending.transaction_of(store, 1, csn(99, 1), state.batch) is None
