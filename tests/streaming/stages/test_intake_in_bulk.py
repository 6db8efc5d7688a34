"""Runs go into the intake at once, everything else record by record."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.intake.intake import Intake
from streaming.core.model.csn import MAX_SKEW_S, MAX_STEP_S, CsnParts, format_csn
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.records.record import Applied, Commit, Heartbeat, Reason, Record
from streaming.core.state.replica_state import ReplicaState
from streaming.stages.checked import checked_records
from streaming.stages.intake import arrived_of, repeated_or_old, take
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import RULES, Speaker, fresh_state, intake_of
from tests.streaming.stages.batches import checked, nothing_evicted, records_of, taken

BATCHES: dict[str, list[Record]] = {
    "plain changes": [change(10), change(11), change(12)],
    "a whole transaction": [change(10, tx=10), change(11, tx=10), Commit(csn(10)), change(12)],
    "an open transaction that is ended later": [
        *(change(10, tx=10), change(11), change(12, tx=10), Commit(csn(10)), change(13)),
    ],
    "one that stays open": [change(10), change(11, tx=11), change(12)],
    "a late change": [change(11), change(10), change(12)],
    "a change between reflections": [change(10), Applied(1, 3, 1, NOTHING_KNOWN), change(11)],
    "opnos": [change(10, opno=1), change(11, opno=2), change(12, opno=3)],
}


@pytest.mark.parametrize("records", BATCHES.values(), ids=BATCHES.keys())
def test_bulk_and_one_by_one_are_the_same_intake(records: list[Record]) -> None:
    """A run is what the rule would have let pass record by record."""
    received = records_of(*records)

    found, intake = taken(*received)

    exact = intake_of(received)
    eligible = [one for transaction in exact.eligible for one in transaction]
    assert [a.change for a in arrived_of(found.eligible)] == [a.change for a in eligible]
    assert [a.mre for a in arrived_of(found.eligible)] == [a.mre for a in eligible]
    assert intake.ruvs == exact.ruvs
    assert [q.reason for q in intake.quarantined] == [q.reason for q in exact.quarantined]


def test_commits_of_runs_are_returned_apart() -> None:
    """They are control events, and the intake has not seen them one by one."""
    records = change(10, tx=10), change(11, tx=10), Commit(csn(10)), change(12, tx=12)

    found, intake = taken(*records_of(*records), *records_of(Heartbeat(1), rid=2))

    assert found.commits["prim_csn"].to_pylist() == [csn(10)]
    assert not any(isinstance(received.record, Commit) for received, _ in intake.events)


def test_transactions_of_all_replicas_stand_in_order_of_their_largest_csn() -> None:
    """The judging order does not depend on the order in which topics are read."""
    one = records_of(change(10, tx=10), change(14, tx=10), Commit(csn(10)))
    two = records_of(change(12, rid=2), change(16, rid=2), rid=2)

    found, _ = taken(*one, *two)

    csns = [csn(12, 2), csn(10), csn(14), csn(16, 2)]
    assert found.eligible["csn"].to_pylist() == csns
    assert found.eligible["tx"].to_pylist() == [csn(12, 2), csn(14), csn(14), csn(16, 2)]


def test_a_change_taken_one_by_one_whose_images_are_away_is_lacking() -> None:
    """It becomes a value of core, which needs its images: the batch is taken anew with them."""
    records = change(10), Heartbeat(1), change(9), Heartbeat(1), change(11)
    table = checked(*records_of(*records)).table
    sizes = pa.array([None, 9, None, 9, None, 9], pa.int64())
    away = table.set_column(table.schema.get_field_index("size"), "size", sizes)

    found = take(Intake(fresh_state(), RULES), checked_records(away, RULES.tables), nothing_evicted)

    assert found.lacking.tolist() == [False, False, False, True, False, False]


def test_csns_at_or_below_the_largest_known_are_looked_up() -> None:
    """Only they can repeat what the changelog holds; ordinary batches look nothing up."""
    received = records_of(change(10), change(12), change(13))
    received[2] = replace(received[2], reason=Reason.SKEW)

    facts = checked(*received)

    assert repeated_or_old(facts, {1: csn(9)}) == []
    assert repeated_or_old(facts, {1: csn(10)}) == [csn(10)]
    assert repeated_or_old(facts, {1: csn(12)}) == [csn(10), csn(12)]
    assert repeated_or_old(facts, {2: csn(99, 2)}) == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 0, 1, MAX_STEP_S, MAX_STEP_S + 1, 2 * MAX_SKEW_S]),
            st.sampled_from([0, 0, 0, 1, MAX_SKEW_S, 3 * MAX_SKEW_S]),
            st.booleans(),
        ),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([None, 0, MAX_STEP_S + 1, 2 * MAX_SKEW_S]),
)
def test_columns_find_every_skew_that_core_finds(
    steps: list[tuple[int, int, bool]], released_s: int | None
) -> None:
    """A run may hold a change that is ahead of its record, if it goes on by sequence.

    `released_s`: how far a change is ahead that an operator released before.
    """
    speaker, clock_s, time_s = Speaker(), 1_800_000_000, 1_800_000_000
    received = speaker.hello()
    for number, (step_s, behind_s, is_transaction) in enumerate(steps):
        time_s += step_s
        one = format_csn(CsnParts(time_s, number, 1, 0))
        written = change(1)._replace(csn=one, prim_csn=one if is_transaction else None)
        sent = speaker.send(written, *[Commit(one)] * is_transaction)
        received += [replace(r, time_ms=(clock_s - behind_s) * 1_000) for r in sent]

    state = fresh_state()
    if released_s is not None:
        released = format_csn(CsnParts(1_800_000_000 + released_s, 0, 1, 0))
        state = replace(state, replicas={**state.replicas, 1: ReplicaState(1, believed=released)})

    found, intake = taken(*received, state=state)

    exact = intake_of(received, state)
    eligible = [one for transaction in exact.eligible for one in transaction]
    assert [a.change for a in arrived_of(found.eligible)] == [a.change for a in eligible]
    assert [q.detail for q in intake.quarantined] == [q.detail for q in exact.quarantined]


def test_a_run_behind_a_wrong_clock_is_taken_at_once() -> None:
    """Record by record it would take ten times as long, for as long as the clock was ahead."""
    ahead = [change(n)._replace(csn=format_csn(CsnParts(2**31, n, 1, 0))) for n in range(3)]
    received = records_of(*ahead)
    received[1] = replace(received[1], time_ms=2**31 * 1_000)
    table = checked(*received).table
    away = pa.array([None, None, 9, 9], pa.int64())
    table = table.set_column(table.schema.get_field_index("size"), "size", away)

    found = take(
        Intake(fresh_state(), RULES), checked_records(table, RULES.tables), nothing_evicted
    )

    assert not found.lacking.any()
    assert found.eligible.num_rows == 3
