"""What stays in memory of a replica's open changes decides as all of them would."""

from dataclasses import replace

import pytest

from streaming.core.intake.eviction import evict, restore
from streaming.core.intake.intake import Intake
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.records.record import Abort, Commit, Record
from streaming.core.state.hub_state import HubState
from streaming.core.state.open_transactions import Evicted
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import RULES, Speaker, intake_of_session, numbers

FEW = 2
KEY = (DEFAULT_DATASET, 1)


def state_of(intake: Intake) -> HubState:
    """The state behind this batch, with its open changes evicted."""
    state = replace(
        intake.state, replicas=intake.replica_states(), ruvs=intake.ruvs, open=intake.open
    )
    evict(state.open, state.replicas, FEW)
    return state


def next_batch(state: HubState, *records: Record) -> Intake:
    """The intake of the next batch, which takes these."""
    intake = Intake(state, RULES)
    for place, record in enumerate(records):
        intake.take(Speaker(session="1-1").quote(record, ahead=50 + place))
    return intake


def test_of_an_open_transaction_its_ends_stay() -> None:
    """Its first and last CSN say what it holds back, and what holds it back."""
    opened = state_of(intake_of_session(*(change(n, tx=10) for n in range(10, 30)))).open

    assert sorted(opened.changes) == [csn(10, 1), csn(29, 1)]
    assert [entry[0] for entry in opened.lists.by_list[KEY]] == [csn(10, 1), csn(29, 1)]
    assert opened.evicted == {(csn(10, 1), 1): Evicted(18)}
    assert all(one.change.after is None for one in opened.changes.values())


def test_the_change_with_the_smallest_mre_stays() -> None:
    """The window must not forget what it is judged by."""
    speaker = Speaker()
    before = [*speaker.hello(), *speaker.send(change(10, tx=10), change(11, epoch=0, tx=10))]
    after = speaker.send(*(change(n, epoch=5, tx=10) for n in range(12, 20)))
    intake = intake_of_session()
    for received in [*before[1:], *after]:
        intake.take(received)
    mre = replace(intake.state, open=intake.open).smallest_mre

    assert state_of(intake).smallest_mre == mre


def test_what_waits_in_one_piece_is_merged() -> None:
    """A million changes behind an open transaction must not take a gigabyte."""
    state = state_of(intake_of_session(change(10, tx=10), *(change(n) for n in range(11, 40))))

    assert sorted(state.open.changes) == [csn(10, 1), csn(11, 1), csn(39, 1)]
    assert state.open.evicted[csn(39, 1), 1] == Evicted(27, merged=True)

    freed = next_batch(state, Commit(csn(10, 1)))
    assert [one.context for one in freed.eligible_on_disk] == [(csn(10, 1), 1), (csn(39, 1), 1)]
    assert freed.ruvs[DEFAULT_DATASET].max_of(1) == csn(39, 1)


@pytest.mark.parametrize("end", [Commit, Abort])
def test_nothing_is_merged_across_the_beginning_of_another_transaction(
    end: type[Commit] | type[Abort],
) -> None:
    """It may hold back what is above it when what is below it goes."""
    plain = [change(n) for n in (*range(11, 20), *range(21, 30))]
    state = state_of(intake_of_session(change(10, tx=10), change(20, tx=20), *plain))

    freed = next_batch(state, end(csn(10, 1)))

    going = [one.context[0] for one in freed.eligible_on_disk if one.context[0] != csn(10, 1)]
    assert going == [csn(19, 1)]
    assert set(freed.open.lists.members) == {(csn(20, 1), 1), (csn(29, 1), 1)}


def test_overlapping_transactions_are_not_merged() -> None:
    """One of them may wait for a change between its own that does not hold back the other."""
    several = (change(11, tx=11), change(14, tx=11), change(12), change(13), change(16))
    state = state_of(intake_of_session(change(10, tx=10), *several, Commit(csn(11, 1))))

    assert state.open.evicted[csn(11, 1), 1] == Evicted(0)
    assert state.open.evicted[csn(16, 1), 1].merged
    assert set(state.open.lists.members) == {(csn(n, 1), 1) for n in (10, 11, 16)}


def test_what_waits_above_a_hole_is_not_merged() -> None:
    """The hole may be filled below one of them and not below the next."""
    plain = [change(n, opno=n) for n in range(12, 20)]
    state = state_of(intake_of_session(change(10, tx=10, opno=1), *plain))

    assert not any(one.merged for one in state.open.evicted.values())
    assert state.open_transactions(at_least=9) == {1: 9}


def test_merged_transactions_come_apart_again() -> None:
    """A change or commit that names one of them needs the exact rule."""
    whole = intake_of_session(change(10, tx=10), *(change(n) for n in range(11, 40)))
    expected = whole.open.copy()
    state = state_of(whole)
    facts = [(one, KEY) for csn_, one in expected.changes.items() if csn_ != csn(10, 1)]

    restore(state.open, (csn(39, 1), 1), facts)

    assert state.open.lists.by_list == expected.lists.by_list
    assert state.open.lists.committed == expected.lists.committed
    assert state.open.changes.keys() == expected.changes.keys()


def test_an_ended_transaction_leaves_its_csns_on_disk() -> None:
    """Its rows are looked up when its replica says more of it."""
    state = state_of(intake_of_session(*(change(n, tx=10) for n in range(10, 30))))

    intake = next_batch(state, change(30, tx=10), Abort(csn(10, 1)), change(31))
    intake.forget_ended()

    assert intake.open.ended[csn(10, 1), 1].on_disk
    assert intake.open.ended_csns == {}
    assert intake.open.on_disk == {1: csn(30, 1)}
    assert numbers(intake) == [31]


def test_a_bad_change_of_an_evicted_transaction_wants_all_of_it() -> None:
    """The whole transaction goes to quarantine with it."""
    state = state_of(intake_of_session(*(change(n, tx=10, opno=n - 9) for n in range(10, 30))))

    assert next_batch(state, change(30, tx=10, opno=3)).wanted == {(csn(10, 1), 1)}
