"""An operator ends an open transaction: what goes on behind it, what is refreshed, what holds."""

import pytest

from streaming.core.intake import orders
from streaming.core.intake.intake import Intake
from streaming.core.intake.transactions import OPERATOR
from streaming.core.model.change import Change
from streaming.core.records.arrival import AbortTransaction
from streaming.core.records.record import Abort, Commit, Reason, Record
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import Speaker, intake_of_session, numbers, reasons

C10 = csn(10, 1)

BEHIND = {1: 7}


def by_hand(intake: Intake, number: int) -> Intake:
    """An operator ends what this CSN names, when the topic was read up to offset 7."""
    orders.end_by_hand(intake, AbortTransaction(csn(number, 1), BEHIND))
    return intake


@pytest.mark.parametrize("named", [9, 11])
def test_an_operator_ends_a_transaction_by_any_csn_of_it(named: int) -> None:
    """What waits behind it goes on; its rows are refreshed at its origin, behind what was read."""
    nested = (change(10, "first", tx=9), change(11, "second", tx=9), change(11, "second", tx=9))

    intake = by_hand(intake_of_session(*nested, change(12)), named)

    assert numbers(intake) == [12]
    assert [(r.rid, r.row[1], r.offset, r.cause) for r in intake.repairs] == [
        (1, '{"k":"first"}', 7, Reason.ENDED),
        (1, '{"k":"second"}', 7, Reason.ENDED),
    ]
    assert intake.open.ended[csn(9, 1), 1].reason == OPERATOR
    assert intake.quarantined == []


HOLDS: dict[str, list[Record]] = {
    "it waits": [change(9, tx=9), change(10, tx=10), Commit(C10)],
    "it is eligible": [change(10)],
    "it is aborted": [change(10, tx=10), Abort(C10)],
    "nobody knows it": [],
}


@pytest.mark.parametrize("records", HOLDS.values(), ids=HOLDS.keys())
def test_what_is_not_open_cannot_be_ended_by_hand(records: list[Record]) -> None:
    """What is committed holds; the operator's command has no effect."""
    before, after = intake_of_session(*records), by_hand(intake_of_session(*records), 10)

    assert after.open == before.open
    assert (numbers(after), after.repairs) == (numbers(before), [])
    assert after.counts["unknown_aborts"] == 1


@pytest.mark.parametrize("comes", [change(11, "other", tx=10), Commit(C10)])
def test_what_comes_of_a_transaction_that_an_operator_ended_is_kept_once(comes: Record) -> None:
    """Its rows were refreshed when it was ended: only a new one is refreshed now."""
    ended = by_hand(intake_of_session(change(10, "first", tx=10)), 10)
    told_already = len(ended.repairs)
    speaker = Speaker(session="1-1")

    for ahead in (8, 9):
        ended.take(speaker.quote(comes, ahead))

    assert reasons(ended) == [Reason.ENDED]
    assert [r.row[1] for r in ended.repairs[told_already:]] == (
        ['{"k":"other"}'] if isinstance(comes, Change) else []
    )
    assert numbers(ended) == []


def test_an_opno_of_what_an_operator_ended_counts_as_filled() -> None:
    """Else its replica would wait for ever."""
    pending = (change(10, tx=10, opno=1), change(11, opno=2))

    assert numbers(by_hand(intake_of_session(*pending), 10)) == [11]


def test_what_an_operator_did_is_counted() -> None:
    """`status` shows the counts of a batch."""
    intake = by_hand(intake_of_session(change(9, tx=9), change(10, tx=10)), 9)

    by_hand(by_hand(by_hand(intake, 10), 77), 78)

    assert {name: intake.counts[name] for name in ("ended_by_hand", "unknown_aborts")} == {
        "ended_by_hand": 2,
        "unknown_aborts": 2,
    }
