"""Invalid changes: what they wrote stays at its writer, and so does all of their transaction."""

from dataclasses import replace

import pytest

from streaming.core.intake.intake import Intake
from streaming.core.model.change import Change, Op
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.record import Commit, Reason, ReceivedRecord
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import Speaker, fresh_state, intake_of, numbers, reasons

ROW = ("t", '{"k":"k"}')


def invalid(speaker: Speaker, reason: Reason, record: Change) -> ReceivedRecord:
    """A change that the check refused."""
    (received,) = speaker.send(record)
    return replace(received, reason=reason, content=record.content)


def kept_rows(intake: Intake) -> list[tuple[str, str]]:
    """The rows of the changes in quarantine."""
    return [one.change.row for one in intake.quarantined if one.change]


def repaired(intake: Intake) -> list[tuple[tuple[str, str], str]]:
    """The rows that are sent again to their origin, and why."""
    return [(repair.row, repair.cause) for repair in intake.repairs]


UNCARRIED = [reason for reason in Reason if reason.is_uncarried]


@pytest.mark.parametrize("reason", UNCARRIED)
def test_an_invalid_change_stays_at_its_writer(reason: Reason) -> None:
    """A user committed it there; a refresh would destroy the only copy of what he wrote."""
    speaker = Speaker()

    intake = intake_of([*speaker.hello(), invalid(speaker, reason, change(9))])

    assert (reasons(intake), repaired(intake)) == ([reason], [])


def test_what_a_record_alone_tells_is_uncarried_but_for_its_session() -> None:
    """Every other reason comes of what was before, and is taken back at its origin."""
    alone = {"json", "version", "kind", "csn", "rid", "rights", "table", "key", "size", "skew"}
    alone |= {"before", "unreadable", "column"}

    assert {reason.value for reason in UNCARRIED} == alone


def test_an_invalid_truncate_stays_at_its_writer_by_the_name_of_its_table() -> None:
    """Its database has no row left; what sets that right is found by this key."""
    speaker = Speaker()
    truncate = change(9)._replace(op=Op.TRUNCATE, key="")

    intake = intake_of([*speaker.hello(), invalid(speaker, Reason.SKEW, truncate)])

    assert (kept_rows(intake), repaired(intake)) == ([("t", ALL_KEYS)], [])


def test_the_key_of_an_invalid_change_is_kept_canonical() -> None:
    """Whatever sets the row right later is found by the text of its key."""
    speaker = Speaker()
    record = change(9)._replace(key='{ "k" : "\\u006b" }')

    intake = intake_of([*speaker.hello(), invalid(speaker, Reason.SKEW, record)])

    assert kept_rows(intake) == [ROW]


@pytest.mark.parametrize("key", ['{"k":5}', '{"other":"k"}', ""])
def test_a_key_that_names_no_row_is_kept_as_it_was_written(key: str) -> None:
    """It is the only thing by which a person finds the row in its database."""
    speaker = Speaker()

    intake = intake_of(
        [*speaker.hello(), invalid(speaker, Reason.KEY, change(9)._replace(key=key))]
    )

    assert kept_rows(intake) == [("t", key)]


@pytest.mark.parametrize("reason", [Reason.SKEW, Reason.KEY])
def test_an_invalid_change_takes_its_transaction_along(reason: Reason) -> None:
    """Before it and behind it: half a transaction must not be judged; all stays at its writer."""
    speaker = Speaker()
    first, bad, last = (change(n, key=f"k{n}", tx=7) for n in (7, 8, 9))

    intake = intake_of(
        [
            *speaker.hello(),
            *speaker.send(first),
            invalid(speaker, reason, bad),
            *speaker.send(last, Commit(csn(7, 1)), change(10)),
        ]
    )

    assert numbers(intake) == [10]
    assert reasons(intake) == [reason] * 3
    assert set(kept_rows(intake)) == {("t", f'{{"k":"k{n}"}}') for n in (7, 8, 9)}
    assert repaired(intake) == []
    assert intake.counts["unknown_commits"] == 1


def test_what_waits_for_a_column_keeps_by_what_it_is_judged() -> None:
    """Later nobody knows any more what its replica had seen when it wrote."""
    speaker = Speaker()
    start = speaker.hello(covers=4)
    waits = invalid(speaker, Reason.COLUMN, change(8))
    other = invalid(speaker, Reason.SIZE, change(9, "other"))

    intake = intake_of([*start, waits, other], fresh_state(hub_epoch=4))

    assert [one.mre for one in intake.quarantined] == [4, None]


def test_so_does_its_transaction() -> None:
    """Before it and behind it."""
    speaker = Speaker()
    first, bad, last = (change(n, key=f"k{n}", tx=7) for n in (7, 8, 9))
    waits = speaker.hello() + speaker.send(first)
    waits += [invalid(speaker, Reason.COLUMN, bad), *speaker.send(last)]

    intake = intake_of(waits)

    assert [one.mre for one in intake.quarantined] == [0, 0, 0]


def test_an_invalid_change_of_another_session_takes_nothing_along() -> None:
    """Its successor publishes the transaction again."""
    speaker = Speaker()
    old = invalid(speaker, Reason.SKEW, change(9, tx=8))
    speaker.received.clear()

    intake = intake_of([*speaker.hello(), replace(old, offset=1, session="another")])

    assert (reasons(intake), repaired(intake), intake.open.ended) == ([Reason.SKEW], [], {})


def test_the_repeat_of_an_invalid_change_takes_its_transaction_along_too() -> None:
    """An old agent published it first: that was kept, and its transaction was not touched."""
    speaker = Speaker()
    old = replace(invalid(speaker, Reason.SKEW, change(9, tx=8)), session="another")
    speaker.received.clear()
    begun = [*speaker.hello(), replace(old, offset=1)]
    speaker.received.append(begun[-1])
    first, again = speaker.send(change(8, "first", tx=8), change(9, tx=8))

    intake = intake_of(
        [*begun, first, replace(again, reason=Reason.SKEW, content=change(9, tx=8).content)]
    )

    assert reasons(intake) == [Reason.SKEW, Reason.SKEW]
    assert intake.counts["duplicates"] == 1
    assert intake.open.ended[csn(8, 1), 1].reason == Reason.SKEW


def test_the_repeat_of_an_invalid_change_is_a_duplicate() -> None:
    """Nothing is kept twice."""
    speaker = Speaker()
    first = invalid(speaker, Reason.SKEW, change(9)) if speaker.hello() else None
    assert first is not None

    intake = intake_of([*speaker.received[:1], first, replace(first, offset=2)])

    assert len(intake.quarantined) == 1
    assert intake.counts["duplicates"] == 1


def test_an_invalid_change_of_a_transaction_that_a_hello_ended_takes_the_rest_back() -> None:
    """The rows that were announced before are repaired, once; what is invalid stays there."""
    speaker = Speaker()
    begun = [*speaker.hello(), *speaker.send(change(8, "first", tx=8)), *speaker.hello()]
    late = [invalid(speaker, Reason.TABLE, change(n, tx=8)) for n in (9, 10)]

    intake = intake_of([*begun, *late])

    assert reasons(intake) == [Reason.TABLE, Reason.TABLE]
    first = ("t", '{"k":"first"}')
    assert repaired(intake) == [(first, Reason.ENDED)]
    assert intake.open.ended[csn(8, 1), 1].reason == Reason.ENDED
    assert [(one, reason) for one, reason, _ in intake.ended] == [
        ((csn(8, 1), 1), "hello"),
        ((csn(8, 1), 1), "ended"),
    ]


def test_a_quarantined_record_says_what_is_wrong_and_what_it_was() -> None:
    """The content finds a repeat; the detail is for people."""
    speaker = Speaker()
    bad = replace(invalid(speaker, Reason.SIZE, change(9)), detail="too large")

    intake = intake_of([*speaker.hello(), bad])

    (kept,) = intake.quarantined
    assert (kept.reason, kept.detail, kept.content) == (
        Reason.SIZE,
        "too large",
        change(9).content,
    )
