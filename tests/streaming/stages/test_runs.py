"""A batch is cut into runs: what goes in bulk is whole, of one replica, and rises."""

import pytest

from streaming.core.records.record import Abort, Commit, Heartbeat, Record
from streaming.stages.runs import closing, runs
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import RULES
from tests.streaming.stages.batches import checked, records_of

Cut = list[tuple[int, bool]]
"""The length of each run, and whether it is plain."""

CASES: dict[str, tuple[list[Record], Cut]] = {
    "plain changes": ([change(10), change(11), change(12)], [(1, False), (3, True)]),
    "a transaction in one piece between plain changes": (
        [change(9), change(10, tx=10), change(11, tx=10), Commit(csn(10)), change(12)],
        [(1, False), (5, True)],
    ),
    "a transaction without its commit": ([change(10, tx=10), change(11, tx=10)], [(3, False)]),
    "a transaction that ends with an abort": ([change(10, tx=10), Abort(csn(10))], [(3, False)]),
    "the second half of a transaction": ([change(11, tx=10), Commit(csn(10))], [(3, False)]),
    "two transactions that interleave": (
        [change(10, tx=10), change(11, tx=11), Commit(csn(10)), Commit(csn(11))],
        [(5, False)],
    ),
    "a commit of nothing": (
        [change(10), Commit(csn(9)), change(11)],
        [(1, False), (1, True), (1, False), (1, True)],
    ),
    "a smaller CSN": ([change(11), change(10)], [(1, False), (1, True), (1, True)]),
    "a control record": (
        [change(10), Heartbeat(1), change(11)],
        [(1, False), (1, True), (1, False), (1, True)],
    ),
    "consecutive opnos": (
        [change(10, opno=1), change(11, opno=2)],
        [(1, False), (2, True)],
    ),
    "a hole in the opnos": (
        [change(10, opno=1), change(11, opno=3)],
        [(1, False), (1, True), (1, True)],
    ),
    "opnos that begin late": (
        [change(10), change(11, opno=1)],
        [(1, False), (1, True), (1, True)],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_run_holds_whole_transactions_that_rise(case: tuple[list[Record], Cut]) -> None:
    """A run is taken at once, so nothing in it may need the record before it."""
    records, expected = case
    facts = checked(*records_of(*records))

    found = list(runs(facts, RULES))

    assert [(run.end - run.start, run.is_plain) for run in found] == expected
    assert [run.start for run in found] == [0, *(run.end for run in found[:-1])]
    assert found[-1].end == len(facts)


def test_replicas_do_not_share_a_run() -> None:
    """Each has its session, its pending list and its element of the RUV."""
    facts = checked(*records_of(change(10)), *records_of(change(11, rid=2), rid=2))

    assert [(run.start, run.end) for run in runs(facts, RULES) if run.is_plain] == [(1, 2), (3, 4)]


def test_each_change_of_a_run_knows_the_last_of_its_transaction() -> None:
    """Transactions are judged in order of their largest CSN."""
    records = change(9), change(10, tx=10), change(11, tx=10), Commit(csn(10)), change(12)
    facts = checked(*records_of(*records))
    _, run = runs(facts, RULES)

    assert closing(facts, run).tolist() == [0, 2, 2, 3]


def test_no_records_make_no_runs() -> None:
    """A batch may consist of operator commands alone."""
    assert list(runs(checked(), RULES)) == []
