"""What is counted of each replica among the totals of a commit row."""

from dataclasses import replace

from streaming.core.conflict.judge import judge
from streaming.core.counts.counter_keys import (
    CHANGES,
    DUPLICATES,
    QUARANTINED,
    ConflictKey,
    CountKey,
    ReplicaKey,
    of_conflicts,
    tally,
)
from streaming.core.counts.tallies import (
    judged_changes,
    quarantined_records,
    recorded_conflicts,
)
from streaming.core.model.function import ConflictFunction, ConflictRule
from streaming.core.model.row import Arrived, RowState
from streaming.core.records.arrival import quarantined_change
from streaming.core.records.record import Reason
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import RULES, T

THEIRS = RowState(2, 5, csn(1, 2), exists=True, image='{"k":"k","v":"theirs"}')
"""A row that replica 2 wrote in hub epoch 5."""
SEEN, UNSEEN = 5, 4


def arrived(number: int, mre: int) -> Arrived:
    """A change of replica 1, which had seen hub epochs up to `mre`."""
    return Arrived(change(number), str(number), "s", number, 0, mre, mre)


def test_a_change_that_loses_is_counted_once() -> None:
    """Otherwise the sum over the verdicts would not be what came in."""
    judged = [judge(arrived(10, UNSEEN), THEIRS, 9, T), judge(arrived(11, SEEN), THEIRS, 9, T)]

    counts = judged_changes({1: 5, 2: 1}, judged)

    assert tally(counts, CHANGES) == {
        (1, "accepted"): 4,
        (1, "rejected"): 1,
        (2, "accepted"): 1,
    }


def test_a_conflict_is_counted_at_its_loser() -> None:
    """The replica that has to be helped is the one whose writes are lost."""
    last_wins = replace(T, function=ConflictFunction(ConflictRule.PASS))
    loses = judge(arrived(10, UNSEEN), THEIRS, 9, T)
    wins = judge(arrived(11, UNSEEN), THEIRS, 9, last_wins)
    unseen = judge(arrived(12, SEEN), THEIRS, 9, T)

    counts = recorded_conflicts([loses, wins, unseen], RULES)

    rule = RULES.tables["t"].function.rule
    assert counts == {
        ConflictKey("update_origin_change", rule, 1, "t"): 1,
        ConflictKey("update_origin_change", rule, 2, "t"): 1,
    }


def test_the_names_do_not_meet() -> None:
    """All of them stand in one map of the commit row."""
    kept = [quarantined_change(arrived(10, SEEN), Reason.LATE, "")] * 2
    totals: dict[CountKey, int] = {
        "judged": 3,
        ReplicaKey(DUPLICATES, 1): 4,
        **quarantined_records(kept),
    }

    assert tally(totals, QUARANTINED) == {(1, "late"): 2}
    assert tally(totals, DUPLICATES) == {(1, "records"): 4}
    assert tally(totals, CHANGES) == {}
    assert of_conflicts(totals) == {}
