"""One batch of the hub: hub epochs, hub order, refreshes, and what it leaves alone."""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace

import pytest

from streaming.core.batch.batch_judge import BatchJudge
from streaming.core.batch.sending import EpochMark, LogEntry, Refresh, SendingView
from streaming.core.conflict.judge import Cause, Judged, Verdict
from streaming.core.intake import orders
from streaming.core.intake.intake import Intake
from streaming.core.model.change import Op, RowKey
from streaming.core.model.function import ConflictFunction, ConflictRule
from streaming.core.model.row import Arrived, Floor, Realign, RowState
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.records.arrival import AbortTransaction, Repair
from streaming.core.records.record import Abort, Commit, Heartbeat, Reason, ReceivedRecord, Record
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.topology import Topology
from tests.harness.builders import change, csn
from tests.reference.batch import BatchDecision, decide
from tests.streaming.core.intake.speaker import RULES, Speaker, T, fresh_state

K: RowKey = ("t", '{"k":"k"}')
THEIRS = RowState(2, 5, csn(1, 2), exists=True, image='{"k":"k","v":"theirs"}')
"""A row that replica 2 wrote in hub epoch 5."""
REPLICAS = {rid: ReplicaState(rid) for rid in (1, 2)}


def decided(
    received: Sequence[ReceivedRecord],
    state: HubState | None = None,
    rows: Mapping[RowKey, RowState] | None = None,
) -> BatchDecision:
    """A batch of these records."""

    def marks(_: int, __: int) -> Sequence[EpochMark]:
        return []

    view = SendingView(0, 0, {}, 10_000, nudged=False, marks=marks)
    return decide(state or fresh_state(), received, rows or {}, RULES, view)


def arrived(
    number: int, *, rid: int = 1, offset: int = 1, mre: int = 0, value: str = "v"
) -> Arrived:
    """A change of row K with its facts."""
    return Arrived(change(number, value=value, rid=rid), str(number), "s", offset, 0, mre, mre)


def judged(
    changes: Sequence[Arrived],
    repairs: Sequence[Repair] = (),
    row: RowState = THEIRS,
    epoch: int = 9,
) -> tuple[Sequence[LogEntry], RowState]:
    """The entries in hub order, and row K behind them."""
    batch_judge = BatchJudge({K: row}, epoch, RULES, REPLICAS)
    batch_judge.realign(repairs)
    for one in changes:
        batch_judge.judge([one])
    batch_judge.refresh(repairs)
    return batch_judge.take_entries(), batch_judge.row(K)


def described(entries: Sequence[LogEntry]) -> list[str]:
    """Entries in short: `+10` accepted, `-10` rejected, `1<theirs` replica 1 is sent that row."""
    return [_described(entry) for entry in entries]


def _described(entry: LogEntry) -> str:
    if isinstance(entry, Judged):
        sign = "+" if entry.verdict is Verdict.ACCEPTED else "-"
        return f"{sign}{entry.arrived.content}"
    assert isinstance(entry, Refresh)
    return f"{entry.to}<{json.loads(entry.row.image)['v'] if entry.row.image else 'gone'}"


# -- tombstones ------------------------------------------------------------------------------

GONE = RowState(2, 4, csn(1, 2))
"""A tombstone of replica 2."""


@pytest.mark.parametrize("row", [GONE, None])
@pytest.mark.parametrize(
    ("op", "mre", "cause"),
    [
        (Op.UPDATE, 5, Cause.AUTHOR),
        (Op.DELETE, 5, Cause.AUTHOR),
        (Op.INSERT, 5, None),
        (Op.UPDATE, 6, None),
    ],
)
def test_a_tombstone_that_may_be_purged_is_nobodys(
    row: RowState | None, op: Op, mre: int, cause: Cause | None
) -> None:
    """Whether it is there still makes no difference; only an insert has seen no row."""
    batch_judge = BatchJudge({K: row} if row else {}, 9, RULES, REPLICAS, tombstone_epoch=6)
    made = change(10, value=None if op is Op.DELETE else "v")._replace(op=op)

    batch_judge.judge([Arrived(made, "10", "s", 1, 0, mre, mre)])

    (found, *refreshes) = batch_judge.take_entries()
    after = batch_judge.row(K)
    assert isinstance(found, Judged)
    assert found.cause is cause
    assert bool(refreshes) == (cause is not None)
    if cause is not None:
        assert after == RowState(realign=(Realign(1, 9),))
    else:
        assert (after.author, after.hub_epoch) == (1, 9)


def test_a_tombstone_that_is_newer_stays() -> None:
    """It is judged by, whatever is purged."""
    batch_judge = BatchJudge({K: GONE}, 9, RULES, REPLICAS, tombstone_epoch=3)

    batch_judge.judge([arrived(10, mre=3)])

    (found, *_) = batch_judge.take_entries()
    assert isinstance(found, Judged)
    assert (found.cause, found.before) == (Cause.AUTHOR, GONE)


# -- hub epochs ------------------------------------------------------------------------------

RISES: dict[str, tuple[list[Record], bool]] = {
    "a change that is judged": ([change(10)], True),
    "a change that is repaired": ([change(11), change(10)], True),
    "a pending one": ([change(10, tx=10)], False),
    "an abort": ([change(10, tx=10), Abort(csn(10, 1))], False),
    "a commit": ([change(10, tx=10), Commit(csn(10, 1))], True),
    "a commit of nothing": ([Commit(csn(10, 1))], False),
    "a heartbeat": ([Heartbeat(4)], False),
    "nothing": ([], False),
}


@pytest.mark.parametrize("case", RISES.values(), ids=RISES.keys())
def test_a_batch_that_has_something_to_say_gets_a_hub_epoch(
    case: tuple[list[Record], bool],
) -> None:
    """Judged, greeted or refreshed; every other one keeps the last."""
    records, rises = case
    speaker = Speaker()
    greeted = decided(speaker.hello()).state

    after = decided(speaker.send(*records), greeted).state

    assert greeted.hub_epoch == 1
    assert after.hub_epoch == (2 if rises else 1)
    assert after.batch == 2


def test_an_applied_alone_makes_no_hub_epoch_and_is_not_answered() -> None:
    """The hub would never be idle (docs/traps.md, Every acknowledgement is answered)."""
    speaker = Speaker()
    greeted = decided(speaker.hello()).state

    after = decided(speaker.applied(epoch=1, covers=1), greeted).state

    assert after.hub_epoch == 1
    assert after.to_send == {}
    assert after.agreements["a1"].acked_covers == 1


def test_a_repair_alone_makes_a_hub_epoch() -> None:
    """A refresh has to be sent in one."""
    speaker = Speaker()
    first = decided([*speaker.hello(), *speaker.send(change(11))])

    after = decided(speaker.send(change(10)), first.state, first.rows)

    assert after.state.hub_epoch == 2
    assert described(after.entries) == ["1<v"]
    assert after.state.to_send["a1"].to == 2


# -- hub order -------------------------------------------------------------------------------


def test_a_loser_is_sent_the_row_as_it_stood_then() -> None:
    """The refresh stands behind it in hub order, before what is judged next."""
    entries, row = judged([arrived(10), arrived(11, rid=2, value="newer")])

    assert described(entries) == ["-10", "1<theirs", "+11"]
    assert row.csn == csn(11, 2)


def test_the_same_version_is_sent_once_a_batch() -> None:
    """Many losers of one row need it once; another version is another refresh."""
    more = [arrived(10), arrived(11), arrived(12, rid=2, value="newer"), arrived(13)]

    entries, _ = judged(more)

    assert described(entries) == ["-10", "1<theirs", "-11", "+12", "-13", "1<newer"]


def test_a_repair_is_sent_behind_everything_that_was_judged() -> None:
    """An older row must not cover a later one (docs/traps.md, A repair among good changes)."""
    repair = Repair(2, K, 3, Reason.LATE)

    entries, row = judged([arrived(10, rid=2, offset=2, value="newer")], [repair])

    assert described(entries) == ["+10", "2<newer"]
    assert row.realign == (Realign(2, 9, 3),)


def test_a_repair_blocks_what_stands_behind_its_record() -> None:
    """And nothing before it, nor of anybody else."""
    changes = [
        arrived(10, rid=2, offset=2, value="before"),
        arrived(11, rid=2, offset=4),
        arrived(12, rid=1, offset=4, mre=9, value="theirs"),
    ]

    entries, _ = judged(changes, [Repair(2, K, 3, Reason.LATE)])

    assert described(entries) == ["+10", "-11", "2<before", "+12", "2<theirs"]


def test_rows_are_repaired_once_a_replica_behind_the_first_record() -> None:
    """Several late changes of one row need one refresh."""
    repairs = [Repair(2, K, 7, Reason.REUSED), Repair(2, K, 3, Reason.LATE)]

    entries, _ = judged([], repairs)

    assert [(e.cause, e.behind) for e in entries if isinstance(e, Refresh)] == [("late", 3)]


@pytest.mark.parametrize("offset", [2, 3, 4])
def test_a_change_that_a_repair_overtook_is_sent_back_to_its_author(offset: int) -> None:
    """Its author was sent what the row was before; what stands behind the repair is blocked.

    A row that an operator drops is repaired behind the last record read: that may be the change.
    """
    mine = THEIRS._replace(author=2, realign=(Realign(2, 8, 3),))
    waited = arrived(10, rid=2, offset=offset, mre=7, value="newer")

    entries, row = judged([waited], row=mine)

    if offset <= 3:
        assert described(entries) == ["+10", "2<newer"]
        assert row.realign == (Realign(2, 9, 3),)
    else:
        assert described(entries) == ["-10", "2<theirs"]


def test_a_repair_of_this_batch_overtakes_nothing() -> None:
    """Its refresh stands behind the change already."""
    waited = [arrived(10, rid=2, offset=2), arrived(11, rid=2, offset=3, value="newer")]

    entries, _ = judged(waited, [Repair(2, K, 4, Reason.LATE)])

    assert described(entries) == ["+10", "+11", "2<newer"]


def test_a_floor_blocks_what_stands_behind_its_hello() -> None:
    """Each has its place (docs/traps.md, A floor that holds for what stands before it)."""
    floors = (Floor(8, offset=3), Floor(6, offset=1))
    batch_judge = BatchJudge({}, 9, RULES, {1: ReplicaState(1, floors=floors)})

    for number, offset in [(10, 1), (11, 2), (12, 4)]:
        one = arrived(number, offset=offset, mre=7)
        batch_judge.judge([one._replace(change=change(number, str(number)))])

    verdicts = [entry.verdict for entry in batch_judge.entries if isinstance(entry, Judged)]
    assert verdicts == ["accepted", "accepted", "rejected"]


def test_a_floor_rejects_a_whole_transaction() -> None:
    """Its replica wrote all of it without what it had lost."""
    by_transaction = replace(T, function=ConflictFunction(ConflictRule.EPOCH_TRANS))
    rules = Topology({"t": by_transaction}, RULES.subscriptions)
    replicas = {1: ReplicaState(1, floors=(Floor(8, offset=3),))}
    changes = [
        arrived(number, offset=offset, mre=7)._replace(change=change(number, str(number), tx=10))
        for number, offset in [(10, 2), (11, 4)]
    ]
    batch_judge = BatchJudge({}, 9, rules, replicas)

    batch_judge.judge(changes)

    judged = [entry for entry in batch_judge.entries if isinstance(entry, Judged)]
    assert [one.verdict for one in judged] == ["rejected", "rejected"]
    assert [one.cause for one in judged] == [Cause.TRANSACTION, Cause.FLOOR]
    assert [one.realign_epoch for one in judged] == [0, 8]
    assert not any(one.same_epoch_only for one in judged)


def test_a_transaction_is_judged_whole_in_order_of_its_largest_csn() -> None:
    """By its smallest, a change that it overwrote at home would come behind it."""
    speaker = Speaker()
    records: list[Record] = [
        change(10, "a", tx=10),
        change(11, "b"),
        change(12, "b", tx=10),
        Commit(csn(10, 1)),
    ]

    decision = decided([*speaker.hello(), *speaker.send(*records)])

    assert [e.arrived.change.csn for e in decision.entries if isinstance(e, Judged)] == [
        csn(11, 1),
        csn(10, 1),
        csn(12, 1),
    ]


# -- what a batch leaves ---------------------------------------------------------------------


def test_a_decision_leaves_its_input_alone() -> None:
    """A batch that is not committed never was, and is decided again the same."""
    speaker = Speaker()
    received = [
        *speaker.hello(),
        *speaker.send(change(10, tx=10), change(9), change(8), change(11)),
    ]
    state, rows = fresh_state(), {K: THEIRS}
    before = deepcopy((state.replicas, state.agreements, state.open, rows))

    first, second = decided(received, state, rows), decided(received, state, rows)

    assert (state.replicas, state.agreements, state.open, rows) == before
    assert first.entries == second.entries
    assert first.state == second.state
    assert first.rows == second.rows


def test_what_the_ruv_covers_is_not_remembered() -> None:
    """A repeat of it is looked up; memory stays bounded."""
    speaker = Speaker()

    state = decided([*speaker.hello(), *speaker.send(change(10), change(9))]).state

    assert state.open.quarantined == {}
    assert state.ruv_of(DEFAULT_DATASET).max_csns() == {1: csn(10, 1)}


def test_a_hello_is_answered_with_what_its_replica_lacks_and_not_with_its_own() -> None:
    """Its later changes in the batch are its own (docs/traps.md, Own changes behind a hello)."""
    first, second = Speaker(1), Speaker(2)
    received = [*first.hello(), *first.send(change(10)), *second.hello()]

    state = decided(received).state

    assert {name: one.to for name, one in state.to_send.items()} == {"a1": 1, "a2": 1}
    assert state.agreements["a2"].sent_ruv.max_csns() == {1: csn(10, 1)}


# -- tables that are not configured any more --------------------------------------------------


def test_a_change_of_a_removed_table_is_quarantined_alone() -> None:
    """The rest of its transaction is judged; nobody is sent a row of a table that is gone."""
    speaker = Speaker()
    gone = change(11, tx=10)._replace(table="gone")
    open_ = [change(10, tx=10), gone, change(12, "l", tx=10)]
    with_table = replace(RULES, tables={**RULES.tables, "gone": T})
    intake = Intake(fresh_state(), with_table)
    for record in [*speaker.hello(), *speaker.send(*open_)]:
        intake.take(record)
    state = replace(fresh_state(), replicas=intake.replica_states(), open=intake.open)

    found = decided(speaker.send(Commit(csn(10))), state)

    judged_ = [entry for entry in found.entries if isinstance(entry, Judged)]
    assert [one.verdict for one in judged_] == [
        Verdict.ACCEPTED,
        Verdict.QUARANTINED,
        Verdict.ACCEPTED,
    ]
    assert len(found.entries) == len(judged_)
    ((kept, reason, detail),) = [(q.change, q.reason, q.detail) for q in found.intake.quarantined]
    assert (kept, reason) == (gone, Reason.TABLE)
    assert detail.startswith("table gone is not configured")


def test_an_aborted_transaction_refreshes_no_removed_table() -> None:
    """Its other rows are refreshed at their origin."""
    speaker = Speaker()
    gone = change(11, tx=10)._replace(table="gone")
    intake = Intake(fresh_state(), replace(RULES, tables={**RULES.tables, "gone": T}))
    for record in [*speaker.hello(), *speaker.send(change(10, tx=10), gone)]:
        intake.take(record)
    state = replace(fresh_state(), replicas=intake.replica_states(), open=intake.open)

    after = Intake(state, RULES)
    orders.end_by_hand(after, AbortTransaction(csn(10), {}))

    assert [repair.row for repair in after.repairs] == [K]
