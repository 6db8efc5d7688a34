"""Invalid changes: a row that is known without doubt is repaired at its origin."""

from dataclasses import replace

import pytest

from streaming.core.intake.intake import Intake
from streaming.core.model.change import Change, Op
from streaming.core.model.record import Commit, Reason, ReceivedRecord
from streaming.core.model.truncation import ALL_KEYS
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import Speaker, intake_of, numbers, reasons

ROW = ("t", '{"k":"k"}')


def invalid(speaker: Speaker, reason: Reason, record: Change) -> ReceivedRecord:
    """A change that the check refused."""
    (received,) = speaker.send(record)
    return replace(received, reason=reason, content=record.content)


def repaired(intake: Intake) -> list[tuple[tuple[str, str], str]]:
    """The rows that are sent again to their origin, and why."""
    return [(repair.row, repair.cause) for repair in intake.repairs]


@pytest.mark.parametrize(
    "reason", [Reason.SKEW, Reason.TABLE, Reason.SIZE, Reason.KIND, Reason.CSN, Reason.RID]
)
def test_an_invalid_change_of_a_known_row_is_taken_back(reason: Reason) -> None:
    """Its database holds it, and nobody else ever will."""
    speaker = Speaker()

    intake = intake_of([*speaker.hello(), invalid(speaker, reason, change(9))])

    assert (reasons(intake), repaired(intake)) == ([reason], [(ROW, reason)])


@pytest.mark.parametrize("reason", [Reason.VERSION, Reason.KEY, Reason.SESSION])
def test_a_change_that_leaves_a_doubt_of_its_row_is_only_kept(reason: Reason) -> None:
    """A newer version may mean something else by it; a key may contradict its image."""
    speaker = Speaker()

    intake = intake_of([*speaker.hello(), invalid(speaker, reason, change(9))])

    assert (reasons(intake), repaired(intake)) == ([reason], [])


@pytest.mark.parametrize(
    "record",
    [
        change(9)._replace(table="nowhere"),
        change(9)._replace(key='{"k":5}'),
        change(9)._replace(key='{"other":"k"}'),
        change(9)._replace(key=""),
    ],
    ids=["table", "value", "column", "no key"],
)
def test_without_a_valid_key_there_is_nothing_to_send(record: Change) -> None:
    """The refresh of a row that cannot be would stop its consumer."""
    speaker = Speaker()

    intake = intake_of([*speaker.hello(), invalid(speaker, Reason.TABLE, record)])

    assert (reasons(intake), repaired(intake)) == ([Reason.TABLE], [])


def test_an_invalid_truncate_is_taken_back_whatever_it_names() -> None:
    """Its database lacks rows that everybody else has."""
    speaker = Speaker()
    truncate = change(9)._replace(op=Op.TRUNCATE, key="")

    intake = intake_of([*speaker.hello(), invalid(speaker, Reason.SKEW, truncate)])

    assert repaired(intake) == [(("t", ALL_KEYS), Reason.SKEW)]


def test_the_key_of_an_invalid_change_is_made_canonical() -> None:
    """Rows are found by the text of their keys."""
    speaker = Speaker()
    record = change(9)._replace(key='{ "k" : "\\u006b" }')

    intake = intake_of([*speaker.hello(), invalid(speaker, Reason.SKEW, record)])

    assert repaired(intake) == [(ROW, Reason.SKEW)]


def test_an_invalid_change_takes_its_transaction_along() -> None:
    """Before it and behind it: half a transaction must not be judged."""
    speaker = Speaker()
    first, bad, last = (change(n, key=f"k{n}", tx=7) for n in (7, 8, 9))

    intake = intake_of(
        [
            *speaker.hello(),
            *speaker.send(first),
            invalid(speaker, Reason.SKEW, bad),
            *speaker.send(last, Commit(csn(7, 1)), change(10)),
        ]
    )

    assert numbers(intake) == [10]
    assert reasons(intake) == [Reason.SKEW] * 3
    assert {row for row, _ in repaired(intake)} == {("t", f'{{"k":"k{n}"}}') for n in (7, 8, 9)}
    assert intake.counts["unknown_commits"] == 1


def test_an_invalid_change_of_another_session_repairs_nothing() -> None:
    """Its successor publishes it again; a realign would let that one lose without need."""
    speaker = Speaker()
    old = invalid(speaker, Reason.SKEW, change(9, tx=8))
    speaker.received.clear()

    intake = intake_of([*speaker.hello(), replace(old, offset=1, session="another")])

    assert (reasons(intake), repaired(intake), intake.open.ended) == ([Reason.SKEW], [], {})


def test_the_repeat_of_an_invalid_change_is_a_duplicate() -> None:
    """Nothing is kept or sent twice."""
    speaker = Speaker()
    first = invalid(speaker, Reason.SKEW, change(9)) if speaker.hello() else None
    assert first is not None

    intake = intake_of([*speaker.received[:1], first, replace(first, offset=2)])

    assert (len(intake.quarantined), len(intake.repairs)) == (1, 1)
    assert intake.counts["duplicates"] == 1


def test_an_invalid_change_of_a_transaction_that_a_hello_ended_takes_the_rest_back() -> None:
    """Its database holds all of it: the rows that were announced before are repaired too, once."""
    speaker = Speaker()
    begun = [*speaker.hello(), *speaker.send(change(8, "first", tx=8)), *speaker.hello()]
    late = [invalid(speaker, Reason.TABLE, change(n, tx=8)) for n in (9, 10)]

    intake = intake_of([*begun, *late])

    assert reasons(intake) == [Reason.TABLE, Reason.TABLE]
    first = ("t", '{"k":"first"}')
    assert repaired(intake) == [(ROW, Reason.TABLE), (first, Reason.ENDED), (ROW, Reason.TABLE)]
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
