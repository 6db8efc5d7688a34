"""Each data set has a RUV and pending lists of its own; a CSN and an opno are taken in all."""

from dataclasses import replace

from streaming.core.intake.intake import Intake
from streaming.core.model.change import Change
from streaming.core.model.ruv import Element, Ruv
from streaming.core.model.statuses import ReplicaStatus
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.records.record import Abort, Commit, Reason, Record
from streaming.core.state.topology import Subscription, Topology
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import (
    Speaker,
    T,
    fresh_state,
    intake_of_session,
    numbers,
    reasons,
)

C10, C13 = csn(10, 1), csn(13, 1)

TWO_DATASETS = Topology(
    {"t": T, "u": replace(T, name="u", dataset="other")},
    {"a1": Subscription("a1", 1, frozenset("t")), "a2": Subscription("a2", 2, frozenset("u"))},
)


def of_other(number: int, *, tx: int | None = None, opno: int | None = None) -> Change:
    """A change of the table in the other data set."""
    return change(number, tx=tx, opno=opno)._replace(table="u")


def told_of_both(*records: Record) -> Intake:
    """The intake of a hello and these records behind it, where tables are of two data sets."""
    speaker = Speaker()
    intake = Intake(fresh_state(), TWO_DATASETS)
    for received in [*speaker.hello(), *speaker.send(*records)]:
        intake.take(received)
    return intake


def maxima(intake: Intake) -> dict[str, dict[int, str]]:
    """Data set -> the largest eligible CSN of each rid."""
    return {dataset: ruv.max_csns() for dataset, ruv in intake.ruvs.items() if ruv.max_csns()}


def test_nested_operations_under_another_rid_move_its_ruv_with_the_primary() -> None:
    """Document 001, 2.2: replica 2's operation, applied by 1, makes 1 write too."""
    main = change(10, rid=2, tx=10)
    nested = change(11)._replace(prim_csn=main.csn)

    open_, done = intake_of_session(main, nested), intake_of_session(main, nested, Commit(main.csn))
    gone = intake_of_session(main, nested, Abort(main.csn))

    assert maxima(open_) == {}
    assert maxima(done) == {DEFAULT_DATASET: {1: csn(11, 1), 2: csn(10, 2)}}
    assert numbers(done) == [10, 11]
    assert maxima(gone) == {}
    assert gone.open.ended_csns.keys() == {main.csn, nested.csn}


def test_each_data_set_has_a_ruv_of_its_own() -> None:
    """What is open in one holds nothing back in the other (document 001, 2.3)."""
    intake = told_of_both(change(10, tx=10), of_other(11), change(12))

    assert numbers(intake) == [11]
    assert maxima(intake) == {"other": {1: csn(11, 1)}}
    assert intake.ruvs["other"].min_of(1) == csn(11, 1)


def test_an_operation_in_two_data_sets_moves_both_ruvs_at_once() -> None:
    """Its commit or abort is one for both; the other's consumers must not see it before."""
    both = (change(10, tx=10), of_other(11, tx=10), of_other(12))

    assert maxima(told_of_both(*both)) == {}
    assert maxima(told_of_both(*both, Commit(C10))) == {
        DEFAULT_DATASET: {1: C10},
        "other": {1: csn(12, 1)},
    }
    assert maxima(told_of_both(*both, Abort(C10))) == {"other": {1: csn(12, 1)}}


def test_late_is_told_within_a_data_set() -> None:
    """The other one's consumers were sent nothing of this one."""
    intake = told_of_both(of_other(12), change(11), of_other(10))

    assert numbers(intake) == [11, 12]
    assert reasons(intake) == [Reason.LATE]
    assert maxima(intake) == {DEFAULT_DATASET: {1: csn(11, 1)}, "other": {1: csn(12, 1)}}


def test_a_csn_names_one_change_whatever_the_data_set() -> None:
    """Who counts by CSN must never count two."""
    assert reasons(told_of_both(change(10), of_other(10))) == [Reason.REUSED]
    assert told_of_both(of_other(10), of_other(10)).counts["duplicates"] == 1


def test_an_opno_that_is_filled_in_one_data_set_frees_the_other() -> None:
    """A replica numbers its changes whatever they touch."""
    hole = (change(10, opno=1), of_other(12, opno=3))

    assert numbers(told_of_both(*hole)) == [10]
    assert numbers(told_of_both(*hole, change(11, opno=2))) == [10, 11, 12]


def test_a_committed_transaction_takes_nothing_more_in_any_data_set() -> None:
    """A second half would be a transaction of its own, which nobody ends."""
    intake = told_of_both(change(10, tx=10), Commit(C10), of_other(11, tx=10))

    assert numbers(intake) == [10]
    assert reasons(intake) == [Reason.LATE]


def test_a_hello_is_held_against_the_ruv_of_what_its_agreement_serves() -> None:
    """A CSN that is not known there was lost by the hub, though another data set has it."""
    state = fresh_state(ruv=Ruv("g", {1: Element(C10, C13)}))
    state = replace(state, ruvs={**state.ruvs, "other": Ruv("g", {1: Element(C10, C10)})})
    intake = Intake(state, TWO_DATASETS)

    for received in Speaker(rid=2).hello(ruv=Ruv("g", {1: Element(C10, C13)})):
        intake.take(received)

    assert intake.replicas[2].status is ReplicaStatus.HUB_BEHIND
