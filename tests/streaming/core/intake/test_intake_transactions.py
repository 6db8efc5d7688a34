"""Transactions at intake: how they end, what they hold back, and runs of whole ones."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from streaming.core.model.csn import rid_of
from streaming.core.model.ruv import Element
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.records.arrival import ControlOutcome
from streaming.core.records.record import Abort, Commit, Reason, Record
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import (
    Speaker,
    intake_of,
    intake_of_session,
    numbers,
    reasons,
)

C10, C13 = csn(10, 1), csn(13, 1)


# -- transactions ----------------------------------------------------------------------------


def test_a_commit_of_one_transaction_frees_what_waits_behind_it() -> None:
    """In order of the largest CSN, and each as a whole."""
    intake = intake_of_session(
        change(10, tx=10), change(11), change(12, tx=12), change(13, tx=10), change(14), Commit(C10)
    )
    assert numbers(intake) == []

    intake.take(Speaker(session="1-1").quote(Commit(csn(12, 1)), ahead=9))
    assert numbers(intake) == [11, 12, 10, 13, 14]


def test_a_hello_ends_what_is_open_and_frees_what_waits() -> None:
    """Nobody else would (docs/traps.md, An open transaction outlives its session)."""
    speaker = Speaker()
    received = [*speaker.hello(), *speaker.send(change(10, tx=10), change(11), change(12, tx=12))]
    received += [*speaker.send(Commit(csn(12, 1))), *speaker.hello()]

    intake = intake_of(received)

    assert numbers(intake) == [11, 12]
    assert [(context, reason) for context, reason, _ in intake.ended] == [((C10, 1), "hello")]
    assert intake.quarantined == []
    assert intake.repairs == []


@pytest.mark.parametrize("comes", [change(11, tx=10), Commit(C10)])
def test_what_comes_of_a_transaction_that_a_hello_ended_is_kept_once(comes: Record) -> None:
    """Its origin holds all of it, so all its rows are refreshed there; a repeat does nothing."""
    speaker = Speaker()
    received = [*speaker.hello(), *speaker.send(change(10, "first", tx=10)), *speaker.hello()]

    intake = intake_of([*received, *speaker.send(comes, comes)])

    assert reasons(intake) == [Reason.ENDED]
    assert ("t", '{"k":"first"}') in {repair.row for repair in intake.repairs}
    assert numbers(intake) == []


@pytest.mark.parametrize("record", [Commit(C10), Abort(C10)])
def test_an_end_of_an_unknown_transaction_is_counted(record: Record) -> None:
    """And ignored."""
    intake = intake_of_session(record)

    assert [outcome for _, outcome in intake.events] == [
        ControlOutcome.TAKEN,
        ControlOutcome.UNKNOWN,
    ]
    assert intake.quarantined == []


@pytest.mark.parametrize("end", [Commit, Abort])
def test_the_end_of_a_nested_operation_alone_does_nothing(
    end: Callable[[str], Commit | Abort],
) -> None:
    """Only the primary commits or cancels: a RUV that one part moved would outlive the abort."""
    parts = (change(10, tx=10), change(11, tx=10), end(csn(11, 1)))

    ended_in_part, aborted = (
        intake_of_session(*parts),
        intake_of_session(*parts, Abort(C10), change(12)),
    )

    assert numbers(ended_in_part) == []
    assert ended_in_part.ruvs[DEFAULT_DATASET].max_csns() == {}
    assert ended_in_part.open.lists.open_of(1) == ((C10, 1),)
    assert numbers(aborted) == [12]
    assert aborted.open.ended_csns.keys() == {C10, csn(11, 1)}


def test_the_min_csn_is_that_of_the_first_eligible_change_and_stays() -> None:
    """An aborted one was never in the changelog: who starts there would find nothing."""
    intake = intake_of_session(
        change(9, tx=9), change(11, tx=11), change(10), Abort(csn(9, 1)), change(12)
    )

    assert intake.ruvs[DEFAULT_DATASET].min_of(1) == C10
    intake.take(Speaker(session="1-1").quote(Commit(csn(11, 1)), ahead=9))
    assert numbers(intake) == [10, 11, 12]
    assert intake.ruvs[DEFAULT_DATASET].elements[1] == Element(C10, csn(12, 1))


def test_the_min_csn_is_the_smallest_of_what_goes_at_once() -> None:
    """A transaction goes behind what it encloses, and began before it."""
    intake = intake_of_session(
        change(9, tx=9), change(10, tx=10), change(13, tx=10), Commit(C10), change(12)
    )
    assert numbers(intake) == []

    intake.take(Speaker(session="1-1").quote(Abort(csn(9, 1)), ahead=9))

    assert numbers(intake) == [12, 10, 13]
    assert intake.ruvs[DEFAULT_DATASET].elements[1] == Element(C10, C13)


def test_an_abort_behind_the_commit_is_ignored() -> None:
    """What is committed holds, also while it waits."""
    intake = intake_of_session(
        change(9, tx=9), change(10, tx=10), Commit(C10), Abort(C10), Commit(csn(9, 1))
    )

    assert numbers(intake) == [9, 10]
    assert intake.counts["unknown_aborts"] == 1


# -- runs of plain changes -------------------------------------------------------------------


def test_a_run_leaves_what_its_changes_leave_one_by_one() -> None:
    """The hot path is a shortcut, not another rule."""
    speaker = Speaker()
    hello = speaker.hello()
    run = speaker.send(*(change(n, opno=n - 9) for n in range(10, 15)))
    single, bulk = intake_of([*hello, *run]), intake_of(hello)

    assert bulk.is_plain_from(1, C10, 1)
    bulk.take_run((DEFAULT_DATASET, 1), C10, csn(14, 1), 5, run[-1].time_ms, 5)

    assert bulk.replicas == single.replicas
    assert bulk.ruvs == single.ruvs
    assert bulk.open == single.open
    assert bulk.numbers == single.numbers == {1: 5}


NO_RUN: dict[str, list[Record]] = {
    "something is pending": [change(9, tx=9)],
    "something stands behind a hole": [change(5, opno=2)],
    "it is late": [change(20)],
    "its CSN was aborted": [change(11, tx=11), Abort(csn(11, 1))],
    "its CSN is in quarantine": [change(5), change(12, tx=4), change(4)],
    "its CSN named a transaction that ended": [change(12, tx=11), Abort(csn(11, 1))],
}


@pytest.mark.parametrize("records", NO_RUN.values(), ids=NO_RUN.keys())
def test_no_run_starts_where_a_rule_must_look(records: list[Record]) -> None:
    """Each of these needs the exact rule for some change from CSN 10 on."""
    assert not intake_of_session(*records).is_plain_from(1, C10, None)


def test_a_run_may_end_below_what_is_remembered() -> None:
    """A CSN far ahead, in quarantine, must not slow its replica down for a day."""
    speaker = Speaker()
    far = [replace(one, reason=Reason.TABLE, content="c") for one in speaker.send(change(99))]

    intake = intake_of([*speaker.hello(), *far])

    assert intake.is_plain_from(1, C10, None, C13)
    assert not intake.is_plain_from(1, C10, None, csn(99, 1))
    assert rid_of(C13) == 1
