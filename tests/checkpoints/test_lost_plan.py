"""A planned batch whose records are gone: what a dead hub wrote of it is dropped."""

from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.commit.epochs import Checkpoint, Plan, plan_of
from checkpoints.commit.faults import FaultPoint
from checkpoints.commit.protocol import BatchOutcome, Ledger, create_state, open_ledger, run
from checkpoints.store import StateStore, rows_of
from checkpoints.tables import TableName
from streaming.core.intake.input_lost import RECREATED, TopicFacts, TopicLoss
from streaming.core.model.errors import OvertakenError
from streaming.core.state.hub_state import HubState

GENESIS = Checkpoint(HubState(1, "00000001000000000000"), {"t": 0}, {"t": "id"}, 1)
PLAN = Plan(1, 1_000, 1, {"t": 0}, {"t": 2}, topic_ids={"t": "id"})
LOSS = {"t": TopicLoss(RECREATED, TopicFacts("other", 1, 5))}


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    """An empty state that was founded."""
    opened = StateStore(tmp_path / "state")
    create_state(opened, GENESIS, "first")
    return opened


def outcome(ledger: Ledger, plan: Plan) -> BatchOutcome:
    """A batch with an event for each offset that it reads, in each of two tables."""
    events = [{"batch": plan.batch, "offset": n} for n in range(*plan.named.get("t", (0, 0)))]
    state = replace(ledger.last.state, batch=plan.batch)
    after = replace(
        ledger.last, state=state, offsets=plan.offsets_to, topic_ids=plan.topic_ids, at_ms=1_000
    )
    tables = (TableName.EVENTS, TableName.QUARANTINE)
    return BatchOutcome({name: rows_of(name, events) for name in tables}, after)


def die(here: FaultPoint) -> None:
    """Die before the commit row."""
    if here is FaultPoint.BEFORE_COMMIT:
        raise InterruptedError


def offsets(store: StateStore, name: TableName = TableName.EVENTS) -> list[int]:
    """What a table has, committed or not."""
    store.refreshed(name)
    found: list[int] = store.read(name)["offset"].to_pylist()
    return sorted(found)


def unfinished(store: StateStore) -> tuple[Ledger, Plan]:
    """The hub after one that wrote its tables and died."""
    dead = open_ledger(store, "dead", die)
    with pytest.raises(InterruptedError):
        run(dead, PLAN, lambda p: outcome(dead, p), lambda _: None)
    ledger = open_ledger(store, "next")
    assert ledger.unfinished is not None
    return ledger, plan_of(ledger.unfinished, {})


@pytest.mark.parametrize("times", [1, 2])
def test_uncommitted_rows_are_dropped_and_the_batch_is_written_anew(
    store: StateStore, times: int
) -> None:
    """However often the hubs that finish it die: no reader ever sees what is gone."""
    for _ in range(times):
        unfinished(store)[0].drop_uncommitted(PLAN)
        assert (offsets(store), offsets(store, TableName.QUARANTINE)) == ([], [])

    ledger = open_ledger(store, "last")
    rest = replace(PLAN, offsets_from={"t": 1})
    run(ledger, PLAN, lambda _: outcome(ledger, rest), lambda _: None)

    assert (offsets(store), offsets(store, TableName.QUARANTINE)) == ([1], [1])
    later = open_ledger(store, "later")
    assert later.unfinished is None
    next_plan = Plan(2, 2_000, 1, {"t": 2}, {"t": 4}, topic_ids={"t": "id"})
    run(later, next_plan, lambda p: outcome(later, p), lambda _: None)
    assert offsets(store) == [1, 2, 3]


def test_nothing_of_a_committed_batch_is_dropped(store: StateStore) -> None:
    """A hub that slept meanwhile is overtaken; its view of the batch does not count."""
    slow, plan = unfinished(store)
    quick = open_ledger(store, "quick")
    run(quick, plan, lambda p: outcome(quick, p), lambda _: None)

    with pytest.raises(OvertakenError):
        slow.drop_uncommitted(plan)

    assert offsets(store) == [0, 1]


def test_what_another_hub_writes_meanwhile_is_not_dropped(store: StateStore) -> None:
    """It finished the batch between the last look at `epochs` and the deletion."""
    slow, plan = unfinished(store)
    quick = open_ledger(StateStore(store.root), "quick")

    def finish() -> None:
        quick.drop_uncommitted(plan)
        run(quick, plan, lambda p: outcome(quick, p), lambda _: None)

    with pytest.raises(Exception, match=r"(?i)transaction|conflict|concurrent"):
        slow.store.drop_batch(TableName.EVENTS, "events:1", 1, finish)

    assert offsets(store) == [0, 1]


def test_a_plan_without_lost_topics_goes_on_where_they_begin() -> None:
    """It reads nothing of them, and names the topic by its new id."""
    plan = replace(PLAN, offsets_from={"t": 7, "u": 1}, offsets_to={"t": 9, "u": 2})

    rest = plan.without(LOSS)

    assert rest.named == {"u": (1, 2)}
    assert (rest.offsets_from, rest.offsets_to) == ({"t": 1, "u": 1}, {"t": 1, "u": 2})
    assert (rest.topic_ids, rest.lost) == ({"t": "other"}, {"t": RECREATED})


def test_a_plan_is_read_back_with_who_is_tried_again(store: StateStore) -> None:
    """The hub that finishes it begins the same resyncs."""
    planned = replace(PLAN, undelivered=("a",), writable=("b",))
    open_ledger(store, "hub").write_plan(planned)

    row = open_ledger(store, "next").unfinished

    assert row is not None
    assert plan_of(row, {}) == planned


def test_a_plan_is_read_back_with_what_was_lost(store: StateStore) -> None:
    """The hub that finishes it stops the same replicas."""
    ledger = open_ledger(store, "hub")
    ledger.write_plan(PLAN.without(LOSS))

    row = open_ledger(store, "next").unfinished

    assert row is not None
    assert plan_of(row, {}) == PLAN.without(LOSS)
