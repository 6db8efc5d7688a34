"""Fair shares: nobody who floods its topic makes the others wait, and everybody goes on."""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from streaming.core.intake.shares import (
    FIRST_COST_S,
    LEAST_RECORDS,
    USUAL_BATCHES,
    BatchBounds,
    BatchCosts,
    shares,
)

BOUNDS = BatchBounds(records=200_000, whole_s=10.0, shared_s=1.0)
FLOODER, ONE, OTHER = 1, 2, 3
MUCH = 1_000_000

rids = st.integers(1, 6)
counts = st.dictionaries(rids, st.integers(0, MUCH), max_size=6)
known_costs = st.dictionaries(rids, st.floats(1e-6, 0.1), max_size=6)
bounds = st.builds(BatchBounds, st.integers(6, 300_000), st.floats(0.1, 20), st.floats(0.01, 2))


def expected_s(taken: dict[int, int], costs: BatchCosts) -> float:
    """What these records are expected to take."""
    return sum(count * costs.of(rid) for rid, count in taken.items())


def test_beside_writers_a_flood_takes_as_long_as_a_usual_batch() -> None:
    """The batch of the others lasts twice as long at most, so they wait no longer than that."""
    costs = BatchCosts(recent_s=(0.4,), record_s={FLOODER: 50e-6}, most={FLOODER: 20_000})

    found = shares({FLOODER: MUCH, ONE: 30, OTHER: 40}, {ONE, OTHER}, costs, BOUNDS)

    assert found[ONE] == 30
    assert found[OTHER] == 40
    assert 7_000 < found[FLOODER] < 8_000


def test_who_wrote_lately_counts_even_if_nothing_of_it_waits() -> None:
    """Its next change would wait for the whole batch that has begun."""
    short = shares({FLOODER: MUCH}, {ONE}, BatchCosts(), BOUNDS)
    whole = shares({FLOODER: MUCH}, {FLOODER}, BatchCosts(), BOUNDS)

    assert short[FLOODER] < whole[FLOODER]


def test_a_slow_hub_does_not_make_the_share_of_a_flood_longer_than_configured() -> None:
    """Otherwise who slows the hub down bit by bit would get ever more of it."""
    costs = BatchCosts(recent_s=(30.0,), record_s={FLOODER: 1e-3})

    assert shares({FLOODER: MUCH, ONE: 1}, {ONE}, costs, BOUNDS)[FLOODER] <= 1_000


def test_a_replica_alone_gets_the_whole_batch() -> None:
    """Nobody waits for anything else, and a large batch is the fastest way to catch up."""
    costs = BatchCosts(record_s={FLOODER: 12e-6})

    assert shares({FLOODER: MUCH}, {FLOODER}, costs, BOUNDS) == {FLOODER: BOUNDS.records}


def test_replicas_that_are_all_behind_share_the_whole_batch() -> None:
    """After an outage no replica is up to date: short batches would only keep all of them back."""
    waiting = dict.fromkeys((FLOODER, ONE, OTHER), MUCH)

    found = shares(waiting, waiting, BatchCosts(record_s=dict.fromkeys(waiting, 12e-6)), BOUNDS)

    assert sum(found.values()) == BOUNDS.records
    assert max(found.values()) - min(found.values()) <= 1


def test_records_that_are_dear_bound_a_batch_by_its_time() -> None:
    """200,000 records of a millisecond each would occupy even an idle hub for minutes."""
    costs = BatchCosts(record_s={FLOODER: 1e-3})

    assert shares({FLOODER: MUCH}, {FLOODER}, costs, BOUNDS) == {FLOODER: 10_000}


@given(counts, st.sets(rids), known_costs, bounds)
def test_every_replica_goes_on(
    waiting: dict[int, int], writing: set[int], record_s: dict[int, float], bounds: BatchBounds
) -> None:
    """However dear its records are, and whoever floods: at least some of what waits is read."""
    found = shares(waiting, writing, BatchCosts(record_s=record_s), bounds)

    least = min(LEAST_RECORDS, bounds.records // max(len(waiting), 1))
    assert found.keys() == waiting.keys()
    assert all(min(waiting[rid], least) <= found[rid] <= waiting[rid] for rid in waiting)
    assert sum(found.values()) <= bounds.records


@given(counts, st.sets(rids), known_costs, bounds)
def test_what_one_does_not_need_the_others_get(
    waiting: dict[int, int], writing: set[int], record_s: dict[int, float], bounds: BatchBounds
) -> None:
    """If anything is left over, the batch is full: by its time, or by its records."""
    costs = BatchCosts(record_s=record_s, most=waiting)

    found = shares(waiting, writing, costs, bounds)

    left = [rid for rid in waiting if found[rid] < waiting[rid]]
    short_s = min(bounds.shared_s, costs.usual_s, bounds.whole_s)
    room_s = max(map(costs.of, waiting), default=0.0) * len(waiting)
    is_full = sum(found.values()) == bounds.records
    assert not left or is_full or expected_s(found, costs) >= short_s - room_s


@example({1: 41_667, 2: 834, 3: 834}, set(), {1: 1e-6}, BatchBounds(6, 0.125, 1.0), 1)
@given(counts, st.sets(rids), known_costs, bounds, rids)
def test_who_floods_more_gets_no_more(
    waiting: dict[int, int],
    writing: set[int],
    record_s: dict[int, float],
    bounds: BatchBounds,
    flooder: int,
) -> None:
    """A share of the time does not depend on how much waits beyond it: nobody wins by writing."""
    costs, bounds = BatchCosts(record_s=record_s), replace(bounds, records=6 * MUCH)
    others = writing - {flooder}
    found = shares(waiting, others, costs, bounds)
    if found.get(flooder, 0) >= waiting.get(flooder, 0):
        return  # it is not cut

    again = shares({**waiting, flooder: 2 * waiting[flooder]}, others, costs, bounds)

    rounding_s = sum(map(costs.of, waiting)) + 1e-9  # a record of each
    assert (again[flooder] - found[flooder]) * costs.of(flooder) <= rounding_s


def test_a_record_that_is_dearer_than_expected_is_found_by_one_batch() -> None:
    """The batch after it keeps to its time."""
    costs = BatchCosts(recent_s=(0.4,)).after({FLOODER: 4_000, ONE: 10}, 4.4)

    assert 0.9e-3 < costs.of(FLOODER) < 1.1e-3
    assert costs.of(ONE) < 2 * FIRST_COST_S


def test_the_first_batch_of_a_flood_is_small() -> None:
    """Nobody knows yet what its records cost; if they are dear, the others wait for that batch."""
    costs = BatchCosts(recent_s=(0.3,) * USUAL_BATCHES)
    for _ in range(50):
        taken = shares({FLOODER: MUCH, ONE: 30}, {ONE}, costs, BOUNDS)
        seconds = 0.3 + taken[FLOODER] * 1.4e-3
        costs = costs.after(taken, seconds)

        assert seconds < 2.2 * 0.3


def test_a_flood_of_cheap_records_gets_more_with_each_batch() -> None:
    """It is kept back for the first batches alone."""
    costs = BatchCosts(recent_s=(0.3,) * USUAL_BATCHES)
    for _ in range(4):
        taken = shares({FLOODER: MUCH, ONE: 30}, {ONE}, costs, BOUNDS)
        costs = costs.after(taken, 0.3 + taken[FLOODER] * 20e-6)

    assert shares({FLOODER: MUCH, ONE: 30}, {ONE}, costs, BOUNDS)[FLOODER] > 10_000


def test_what_a_flood_takes_does_not_become_usual() -> None:
    """Otherwise its share, which is as long as a usual batch, would become longer and longer."""
    costs = BatchCosts(recent_s=(0.1,) * USUAL_BATCHES)
    for _ in range(100):
        taken = shares({FLOODER: MUCH, ONE: 30}, {ONE}, costs, BOUNDS)
        costs = costs.after(taken, 0.1 + taken[FLOODER] * 4e-3)

    assert shares({FLOODER: MUCH, ONE: 30}, {ONE}, costs, BOUNDS)[FLOODER] == LEAST_RECORDS
    assert costs.usual_s <= 0.2


def test_one_slow_batch_is_forgotten() -> None:
    """A machine that paused must not keep a replica back for longer than some batches."""
    costs = BatchCosts(recent_s=(0.4,)).after({FLOODER: 4_000}, 60.0)
    for _ in range(12):
        taken = shares({FLOODER: MUCH, ONE: 1}, {ONE}, costs, BOUNDS)
        costs = costs.after(taken, 0.4 + taken[FLOODER] * 50e-6)

    assert costs.of(FLOODER) < 100e-6


def test_small_batches_make_no_record_dear() -> None:
    """Their time is that of any batch: the next burst would be cut for nothing."""
    costs = BatchCosts()
    for seconds in (0.3, 0.4, 0.2, 2.0) * 10:
        costs = costs.after({ONE: 30, OTHER: 300}, seconds)

    assert costs.of(ONE) == FIRST_COST_S
    assert len(costs.recent_s) == USUAL_BATCHES
    assert 0.2 <= costs.usual_s <= 0.4


def test_a_machine_that_became_slow_is_no_flood() -> None:
    """Usual batches take longer now; if their records counted as dear, they would stay cut."""
    costs, slow_s = BatchCosts(recent_s=(0.1,) * USUAL_BATCHES), 1.0
    waiting, bounds = {FLOODER: MUCH, ONE: 10}, replace(BOUNDS, shared_s=0.5)
    for _ in range(100):
        taken = shares(waiting, {ONE}, costs, bounds)
        costs = costs.after(taken, slow_s + taken[FLOODER] * 50e-6)

    assert shares(waiting, {ONE}, costs, bounds)[FLOODER] > 2_000
