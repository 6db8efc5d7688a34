"""From records to eligible transactions: what is kept aside and why, and what goes on."""

from dataclasses import replace

import pytest

from streaming.core.intake.intake import Intake
from streaming.core.model.ruv import Element, Ruv
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.records.record import Abort, Commit, Reason, Record
from tests.harness.builders import change, csn
from tests.reference.batch import in_order
from tests.streaming.core.intake.speaker import (
    RULES,
    Speaker,
    fresh_state,
    intake_of,
    intake_of_session,
    numbers,
    reasons,
)

C10 = csn(10, 1)


# -- every reason that the driver decides ----------------------------------------------------

REASONS: dict[str, tuple[list[Record], list[Reason], list[int]]] = {
    "late": ([change(12), change(11)], [Reason.LATE], [12]),
    "late, behind its transaction's commit": (
        [change(9, tx=9), Commit(csn(9, 1)), change(11, tx=9)],
        [Reason.LATE],
        [9],
    ),
    "late, with its transaction, which waits": (
        [change(8, tx=8), change(9, tx=9), Commit(csn(9, 1)), change(11, tx=9)],
        [Reason.LATE, Reason.LATE],
        [],
    ),
    "late, with its transaction, which is open": (
        [change(12, tx=12), change(8), change(9), change(7, tx=12), Commit(csn(12, 1))],
        [Reason.LATE, Reason.LATE],
        [8, 9],
    ),
    "reused CSN": ([change(10), change(10, value="other")], [Reason.REUSED], [10]),
    "reused CSN of what is pending": (
        [change(10, tx=10), change(10, value="other")],
        [Reason.REUSED],
        [],
    ),
    "reused CSN of what is aborted": (
        [change(10, tx=10), Abort(C10), change(10, value="other")],
        [Reason.REUSED],
        [],
    ),
    "reused CSN of what is in quarantine": (
        [change(12), change(11), change(11, value="other")],
        [Reason.LATE, Reason.REUSED],
        [12],
    ),
    "reused CSN, with its transaction": (
        [change(10), change(11, tx=11), change(10, "other", tx=11), Commit(csn(11, 1))],
        [Reason.REUSED, Reason.REUSED],
        [10],
    ),
    "reused CSN that names an open transaction": (
        [change(11, tx=10), change(10)],
        [Reason.REUSED],
        [],
    ),
    "reused opno": ([change(10, opno=1), change(11, opno=1)], [Reason.REUSED], [10]),
    "reused opno behind a hole": (
        [change(10, opno=1), change(12, opno=3), change(13, opno=3)],
        [Reason.REUSED],
        [10],
    ),
    "ended, by an abort": (
        [change(10, tx=10), Abort(C10), change(11, tx=10)],
        [Reason.ENDED],
        [],
    ),
}


@pytest.mark.parametrize("case", REASONS.values(), ids=REASONS.keys())
def test_bad_input_is_kept_aside(case: tuple[list[Record], list[Reason], list[int]]) -> None:
    """It never stops the hub: the rest goes on, and its row is repaired at its origin."""
    records, expected, eligible = case

    intake = intake_of_session(*records)

    assert reasons(intake) == expected
    assert numbers(intake) == eligible
    assert {kept.change.row for kept in intake.quarantined if kept.change} == {
        repair.row for repair in intake.repairs
    }


def test_what_is_not_above_the_purge_ruv_is_purged() -> None:
    """It may be a duplicate or not (docs/traps.md, A CSN below the purge RUV)."""
    state = fresh_state(purge_ruv=Ruv(elements={1: Element(C10, C10)}))
    speaker = Speaker()

    intake = intake_of([*speaker.hello(), *speaker.send(change(9), change(11))], state)

    assert reasons(intake) == [Reason.PURGED]
    assert numbers(intake) == [11]
    assert len(intake.repairs) == 1


def test_a_record_before_the_first_hello_is_of_no_session() -> None:
    """Nobody knows what its replica had seen."""
    speaker = Speaker(session="nobody's")

    assert reasons(intake_of(speaker.send(change(10)))) == [Reason.SESSION]


def test_a_record_of_an_old_session_is_no_base_for_a_duplicate() -> None:
    """The later one is true (docs/traps.md, A duplicate of a record of an old session)."""
    speaker = Speaker()
    received = [*speaker.hello(), *speaker.hello(), speaker.quote(change(10), session="1-1")]

    intake = intake_of([*received, *speaker.send(change(10))])

    assert reasons(intake) == [Reason.SESSION]
    assert numbers(intake) == [10]
    assert intake.repairs == []


def test_an_applied_of_what_was_not_sent_is_kept_aside() -> None:
    """It would raise the MRE above what the replica can have seen, and accept everything."""
    speaker = Speaker()

    intake = intake_of([*speaker.hello(), *speaker.applied(1, 5)], fresh_state(hub_epoch=5))

    assert reasons(intake) == [Reason.SESSION]
    assert intake.replicas[1].status is ReplicaStatus.LIVE
    session = intake.replicas[1].session
    assert session is not None
    assert session.mre == 0


def test_an_applied_of_what_was_never_sent_stops_its_replica() -> None:
    """A batch is committed before it is published, so the hub's state was put back."""
    speaker = Speaker()
    records = [*speaker.hello(), *speaker.applied(1, 6), *speaker.send(change(10))]

    intake = intake_of(records, fresh_state(hub_epoch=5))

    assert intake.replicas[1].status is ReplicaStatus.HUB_BEHIND
    assert intake.replicas[1].stop_offset == 1
    assert intake.agreements["a1"].status is AgreementStatus.HUB_BEHIND
    assert (reasons(intake), numbers(intake)) == ([], [])


@pytest.mark.parametrize(("covers", "is_stopped"), [(5, False), (6, True)])
def test_a_replica_without_an_agreement_may_have_what_the_hub_has(
    covers: int, *, is_stopped: bool
) -> None:
    """What an agreement once sent it nobody remembers, so only the hub's own epoch is a proof."""
    intake = Intake(fresh_state(hub_epoch=5), replace(RULES, subscriptions={}))

    for one in Speaker().hello(covers=covers):
        intake.take(one)

    assert intake.replicas[1].is_stopped is is_stopped


def test_an_empty_record_is_of_no_kind() -> None:
    """Whatever the border let through is kept aside."""
    speaker = Speaker()

    assert reasons(intake_of([*speaker.hello(), speaker.quote(None)])) == [Reason.KIND]


FOUND_BY_VALIDATION = [r for r in Reason if r not in (Reason.SESSION, Reason.LATE, Reason.ENDED)]


@pytest.mark.parametrize("reason", FOUND_BY_VALIDATION)
def test_what_validation_found_is_kept_with_its_reason(reason: Reason) -> None:
    """A repeat of it is a duplicate; test_invalid.py says which rows are repaired."""
    speaker = Speaker()
    hello = speaker.hello()
    received = [
        replace(one, reason=reason, content="c") for one in speaker.send(change(10), change(10))
    ]

    intake = intake_of([*hello, *received])

    assert reasons(intake) == [reason]
    assert intake.counts["duplicates"] == 1


@pytest.mark.parametrize("text", ["", "zz", "ABCDEF", csn(10, 2)])
def test_a_csn_that_is_none_of_the_replicas_own_names_nothing(text: str) -> None:
    """It must not stop the hub, nor keep the change aside that has this CSN by right."""
    speaker = Speaker()
    hello = speaker.hello()
    bad = change(10)._replace(csn=text)
    received = [replace(one, reason=Reason.CSN, content="c") for one in speaker.send(bad, bad)]

    intake = intake_of([*hello, *received])

    assert reasons(intake) == [Reason.CSN, Reason.CSN]
    assert intake.open.quarantined == {}
    assert [kept.content for kept in intake.quarantined] == [None, None]
    intake.open.forget(intake.ruvs.values())


# -- opno ------------------------------------------------------------------------------------


def test_a_hole_in_the_opnos_is_waited_for() -> None:
    """What is above it may overwrite what stands in it."""
    first, second = change(10, opno=1), change(12, opno=3)

    assert numbers(intake_of_session(first, second)) == [10]
    assert numbers(intake_of_session(first, second, change(11, opno=2))) == [10, 11, 12]


def test_an_aborted_opno_counts_as_filled() -> None:
    """Else its replica would wait for ever."""
    aborted: list[Record] = [change(10, tx=10, opno=1), Abort(C10)]

    assert numbers(intake_of_session(*aborted, change(11, opno=2))) == [11]


def test_a_quarantined_opno_counts_as_filled() -> None:
    """Else its replica would wait for ever."""
    assert numbers(
        intake_of_session(change(12, opno=1), change(11, opno=2), change(13, opno=3))
    ) == [12, 13]


@pytest.mark.parametrize("text", [csn(11, 1), csn(11, 2), "zz"])
def test_an_opno_that_validation_refused_counts_as_filled(text: str) -> None:
    """Whatever is wrong with its CSN, nothing else will come with that opno."""
    speaker = Speaker()
    received = [*speaker.hello(), *speaker.send(change(10, opno=1))]
    bad = change(11, opno=2)._replace(csn=text)
    received += [replace(one, reason=Reason.TABLE, content="c") for one in speaker.send(bad)]

    assert numbers(intake_of([*received, *speaker.send(change(12, opno=3))])) == [10, 12]


def test_what_waits_behind_a_hole_goes_when_a_quarantine_fills_it() -> None:
    """The one that fills it need not be eligible itself."""
    waits = change(13, opno=3)

    assert numbers(intake_of_session(change(12, opno=1), waits, change(11, opno=2))) == [12, 13]


# -- duplicates ------------------------------------------------------------------------------

DUPLICATES: dict[str, list[Record]] = {
    "of an eligible one": [change(10), change(10)],
    "of a pending one": [change(10, tx=10), change(10, tx=10)],
    "of a waiting one": [change(9, tx=9), change(10), change(10)],
    "of an aborted one": [change(10, tx=10), Abort(C10), change(10, tx=10)],
    "of one in quarantine": [change(12), change(11), change(11)],
}


@pytest.mark.parametrize("records", DUPLICATES.values(), ids=DUPLICATES.keys())
def test_a_repeated_change_changes_nothing(records: list[Record]) -> None:
    """Wherever the first one is."""
    once, twice = intake_of_session(*records[:-1]), intake_of_session(*records)

    assert twice.counts["duplicates"] == 1
    assert numbers(twice) == numbers(once)
    assert reasons(twice) == reasons(once)
    assert twice.open == once.open


def test_a_change_of_an_earlier_batch_is_known_by_its_history() -> None:
    """At or below the RUV the state remembers nothing; the caller looks it up."""
    state = fresh_state(ruv=Ruv(elements={1: Element(C10, C10)}))
    speaker = Speaker()
    received = [*speaker.hello(), *speaker.send(change(10), change(10, value="other"))]
    intake = Intake(state, RULES, {C10: frozenset([change(10).content])})

    for one in received:
        intake.take(one)

    assert intake.counts["duplicates"] == 1
    assert reasons(intake) == [Reason.REUSED]


def test_a_repeated_hello_is_a_duplicate() -> None:
    """It would end what was opened behind it (docs/traps.md, A hello that comes twice)."""
    speaker = Speaker()
    received = speaker.hello()

    intake = intake_of(
        [*received, *speaker.send(change(10, tx=10)), *received, *speaker.send(Commit(C10))]
    )

    assert numbers(intake) == [10]
    assert intake.hellos == 1


# -- what a batch remembers ------------------------------------------------------------------


def test_the_ruv_moves_over_eligible_changes_only() -> None:
    """Whoever reads it may rely on the changelog."""
    intake = intake_of_session(change(10), change(11, tx=11), change(12))

    assert intake.ruvs[DEFAULT_DATASET].max_csns() == {1: C10}
    assert intake.ruvs[DEFAULT_DATASET].min_of(1) == C10


def test_a_waiting_change_keeps_the_mre_of_its_arrival() -> None:
    """See docs/traps.md, A waiting change is judged by a later MRE."""
    state = fresh_state(hub_epoch=5)
    speaker = Speaker()
    received = [*speaker.hello(covers=2), *speaker.send(change(9, tx=9), change(10, epoch=3))]
    intake = intake_of(received, state)
    name = intake.agreements["a1"]
    intake.agreements["a1"] = replace(name, sent_covers=5)

    for one in [*speaker.applied(epoch=2, covers=5), *speaker.send(Commit(csn(9, 1)))]:
        intake.take(one)

    assert [(one.change.csn, one.mre) for (one,) in in_order(intake.eligible)] == [
        (csn(9, 1), 2),
        (C10, 2),
    ]


def test_a_row_that_is_hidden_from_its_writer_was_never_seen() -> None:
    """See docs/traps.md, Covers counts for rows that were never sent."""
    speaker = Speaker()
    topology = replace(RULES, subscriptions={})
    intake = Intake(fresh_state(hub_epoch=5), topology)

    for one in [*speaker.hello(covers=4), *speaker.send(change(10, epoch=2))]:
        intake.take(one)

    assert [arrived.mre for (arrived,) in intake.eligible] == [0]


def test_the_state_before_the_batch_stays_as_it_was() -> None:
    """A batch that is not committed leaves no trace."""
    state = fresh_state()
    speaker = Speaker()
    received = [*speaker.hello(), *speaker.send(change(10, tx=10), change(11), change(9))]

    intake_of(received, state)

    assert state == fresh_state()
    assert state.open == fresh_state().open
