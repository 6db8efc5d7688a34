"""Clocks that were wrong: which CSNs are too far ahead of the time of their record."""

from dataclasses import replace

import pytest

from streaming.core.intake.intake import Intake
from streaming.core.model.change import Change
from streaming.core.model.csn import MAX_SKEW_S, MAX_STEP_S, CsnParts, format_csn
from streaming.core.records.record import Commit, Reason, ReceivedRecord, Record
from tests.harness.builders import change
from tests.streaming.core.intake.speaker import RULES, Speaker, fresh_state, intake_of

NOON_S = 1_800_000_000
HOURS_30 = 30 * 3_600
YEARS_20 = 20 * 365 * 86_400


def of(time_s: int, number: int = 0, prim: str | None = None) -> Change:
    """A change with a CSN of this time."""
    csn = format_csn(CsnParts(time_s, number, 1, 0))
    return change(1)._replace(csn=csn, key=f'{{"k":"{number}"}}', prim_csn=prim)


def at(time_s: int, *records: Record) -> list[tuple[int, Record]]:
    """Records whose writer's clock said so when they were published."""
    return [(time_s, record) for record in records]


def received(*timed: tuple[int, Record]) -> list[ReceivedRecord]:
    """A hello and these records behind it, in one topic."""
    speaker = Speaker()
    hello = speaker.hello()
    sent = speaker.send(*(record for _, record in timed))
    times = [time_s for time_s, _ in timed]
    return hello + [replace(r, time_ms=t * 1_000) for r, t in zip(sent, times, strict=True)]


LIMIT_S = NOON_S + MAX_SKEW_S

HISTORIES: dict[str, tuple[list[tuple[int, Record]], list[Reason]]] = {
    "as far ahead as may be": (at(NOON_S, of(LIMIT_S)), []),
    "a second further": (at(NOON_S, of(LIMIT_S + 1)), [Reason.SKEW]),
    "behind its record": (at(NOON_S, of(1)), []),
    "a day behind what was accepted": (at(NOON_S, of(LIMIT_S), of(LIMIT_S + 1, 1)), []),
    "by a step that no sequence explains": (
        at(NOON_S, of(LIMIT_S), of(LIMIT_S + MAX_STEP_S + 1, 1)),
        [Reason.SKEW],
    ),
    "30 hours ahead for ten seconds": (
        [
            *at(NOON_S, of(NOON_S)),
            *at(NOON_S + HOURS_30, of(NOON_S + HOURS_30)),
            *at(NOON_S + 10, of(NOON_S + HOURS_30, 1), of(NOON_S + HOURS_30, 2)),
            *at(NOON_S + HOURS_30 + 60, of(NOON_S + HOURS_30 + 60)),
        ],
        [],
    ),
    "20 years ahead, in the middle of a transaction": (
        [
            *at(NOON_S + YEARS_20, of(NOON_S + YEARS_20, 1, of(NOON_S + YEARS_20, 1).csn)),
            *at(NOON_S, of(NOON_S + YEARS_20, 2, of(NOON_S + YEARS_20, 1).csn)),
            *at(NOON_S, Commit(of(NOON_S + YEARS_20, 1).csn), of(NOON_S + YEARS_20 + 1)),
        ],
        [],
    ),
    "in 1970 for an hour": (
        [
            *at(NOON_S, of(NOON_S)),
            *at(60, of(NOON_S, 1), of(NOON_S, 2)),
            *at(NOON_S + 3_600, of(NOON_S + 3_600)),
        ],
        [],
    ),
    "written by a wrong clock, published by a right one": (
        at(NOON_S, of(NOON_S), of(NOON_S + HOURS_30), of(NOON_S + HOURS_30, 1), of(NOON_S + 1)),
        [Reason.SKEW, Reason.SKEW],
    ),
    "a wrong clock goes on": (
        [
            *at(NOON_S + HOURS_30, of(NOON_S + HOURS_30)),
            *at(NOON_S + 3_600, of(NOON_S + HOURS_30 + 3_600)),
        ],
        [Reason.SKEW],
    ),
}
"""Name -> records with the times of their writer's clock, and why some are in quarantine."""


@pytest.mark.parametrize("name", HISTORIES)
def test_a_generator_that_goes_on_by_sequence_is_no_new_skew(name: str) -> None:
    """Or every write is quarantined until time has caught up with a clock that was wrong once."""
    timed, expected = HISTORIES[name]

    intake = intake_of(received(*timed))

    assert [kept.reason for kept in intake.quarantined] == expected


def test_the_skew_of_a_change_names_what_it_would_have_to_go_on_behind() -> None:
    """An operator sees which clock is wrong, and by how much."""
    first = of(NOON_S)

    (kept,) = intake_of(received(*at(NOON_S, first, of(LIMIT_S + 1)))).quarantined

    assert kept.detail == (
        f"field csn: it is 86401000 ms ahead of its record, 86400000 are allowed, and it does not"
        f" go on behind {first.csn}: correct the clock of its replica"
    )


def test_a_skewed_change_takes_its_transaction_along() -> None:
    """Half a transaction must not be judged."""
    prim = of(NOON_S, 1)
    inside = [prim._replace(prim_csn=prim.csn), of(LIMIT_S + 1, 2, prim.csn)]

    intake = intake_of(received(*at(NOON_S, *inside, Commit(prim.csn))))

    assert [kept.reason for kept in intake.quarantined] == [Reason.SKEW] * 2
    assert intake.eligible == []


def test_what_goes_on_behind_a_released_change_is_accepted() -> None:
    """One command mends a clock that was wrong: nobody has to give it again for every write."""
    ahead = of(NOON_S + HOURS_30)
    written = at(NOON_S, of(NOON_S + HOURS_30, 1), of(NOON_S + HOURS_30 + MAX_STEP_S, 2))
    beyond = at(NOON_S, of(NOON_S + HOURS_30 + 3 * MAX_STEP_S, 3))
    intake = Intake(fresh_state(), RULES)

    intake.believed.accept(ahead.csn)
    for one in received(*written, *beyond):
        intake.take(one)

    assert [kept.reason for kept in intake.quarantined] == [Reason.SKEW]
    assert [a.change.csn for (a,) in intake.eligible] == [
        one.csn for _, one in written if isinstance(one, Change)
    ]
    assert intake.replica_states()[1].believed == ""


def test_the_largest_released_csn_counts() -> None:
    """An older change may be released last."""
    intake = Intake(fresh_state(), RULES)

    intake.believed.accept(of(NOON_S + HOURS_30).csn)
    intake.believed.accept(of(NOON_S).csn)

    assert intake.replica_states()[1].believed == of(NOON_S + HOURS_30).csn
