"""The log as a journal: in order, whole, and never forgotten before the topic has it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.agent.contract import JournalEntry
from connectors.agent.images import WireImage
from connectors.postgres.log.fold import Captured, FoldState
from connectors.postgres.log.journal import LogCheckpoint, LogJournal
from connectors.postgres.log.pgoutput import Relation
from connectors.postgres.log.transactions import LogTransaction, RowWrite, Whose
from connectors.postgres.messages import AppliedMessage
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import Generator
from streaming.core.model.errors import StateError
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.records.record import Applied, Commit
from tests.harness.examples import examples

START = LogCheckpoint(100, FoldState(Generator(7)))
ALL = (10**6, 10**9)
ITEM = Relation(1, "public", "t", "f", ())


def transaction(end: int, changes: int) -> LogTransaction:
    """One of so many changes that ends there."""
    writes = tuple(RowWrite(ITEM, None, {"id": str(n)}) for n in range(changes))
    return LogTransaction(end - 1, end, 5, Whose.LOCAL, writes)


def captured(of: LogTransaction) -> list[Captured]:
    """Its changes, each of 1,000 characters."""
    row = WireImage("x" * 1000, "x" * 1000)
    ids = [one.new["id"] for one in of.writes if isinstance(one, RowWrite) and one.new]
    return [Captured("t", Op.INSERT, WireImage(f'{{"id":{n}}}', ""), None, row) for n in ids]


def applied(end: int, epoch: int) -> LogTransaction:
    """One in which a batch was applied."""
    message = AppliedMessage(Applied(epoch, 4, 1, NOTHING_KNOWN, 4), "s1", (0, 0))
    return LogTransaction(end - 1, end, 0, Whose.OWN, messages=(message,))


def staying(end: int, rows: dict[int, int]) -> LogTransaction:
    """One of which so many rows of these tables stay in the database."""
    return LogTransaction(end - 1, end, 5, Whose.STAYS, staying=rows)


def in_parts(of: LogTransaction, data: st.DataObject) -> list[LogTransaction]:
    """The same transaction as it may be handed over."""
    parts, rest = list[LogTransaction](), of.writes
    while of.whose is Whose.LOCAL and data.draw(st.booleans()):
        size = data.draw(st.integers(0, 2))
        parts.append(replace(of, end_lsn=None, writes=rest[:size]))
        rest = rest[size:]
    return [*parts, replace(of, writes=rest)]


def journal(*log: LogTransaction) -> LogJournal:
    """A journal that has read these."""
    made = LogJournal(START, captured)
    for one in log:
        made.add(one)
    return made


def test_a_round_is_bounded_and_the_same_until_it_is_published() -> None:
    """The loop asks again when the broker was away."""
    made = journal(*(transaction(end, 1) for end in range(101, 111)))

    assert len(made.first(3, 10**6)) == 3
    assert len(made.first(100, 2500)) == 3
    assert len(made.first(100, 1)) == 1
    assert made.first(3, 10**6) == made.first(3, 10**6)
    made.mark_published(made.first(2, 10**6)[-1])
    assert made.first(1, 1)[0].id == 102 << 24


def test_the_checkpoint_moves_at_the_ends_of_transactions() -> None:
    """Reading goes on there: a transaction that is published in part is read as a whole again."""
    made = journal(transaction(101, 1), transaction(102, 3), transaction(103, 1))
    entries = made.first(*ALL)

    inside = made.mark_published(entries[2])
    assert isinstance(entries[2].record, Change)
    assert (inside.lsn, inside.state.opno, inside.csn) == (101, 1, entries[2].record.csn)
    behind = made.mark_published(entries[4])
    assert isinstance(entries[4].record, Commit)
    assert (behind.lsn, behind.state.opno) == (102, 4)
    again = LogJournal(inside, captured)
    again.add(transaction(102, 3))
    assert again.first(*ALL) == entries[3:5]


def test_what_a_hello_says_is_left_out_and_counted() -> None:
    """The applied of before; what is written behind it has its epoch all the same."""
    made = journal(applied(101, 1), transaction(102, 1), applied(103, 2))
    made.answer(1)
    made.add(applied(104, 3))

    change, second, third = (one.record for one in made.first(*ALL))
    assert isinstance(change, Change)
    assert change.epoch == 2
    assert isinstance(second, Applied)
    assert isinstance(third, Applied)
    assert (second.epoch, third.epoch) == (2, 3)


def test_an_idle_log_is_forgotten_up_to_what_is_decoded() -> None:
    """Other tables' writes would fill the server's disk."""
    made = journal(transaction(101, 0), applied(102, 1))
    assert made.pass_idle(500) == START
    made.answer(1)

    assert (made.pass_idle(500).lsn, made.checkpoint.state.epoch) == (500, 2)
    assert made.pass_idle(400).lsn == 500


def test_rows_that_stay_are_passed_with_the_checkpoint_behind_them() -> None:
    """Stored with it, they count once, however often the log is read."""
    made = journal(transaction(101, 1), staying(102, {5: 2}), transaction(103, 1))
    first, second = made.first(*ALL)
    assert (made.holds_staying(), made.passed_staying) == (True, {})

    made.mark_published(first)
    assert (made.checkpoint.lsn, made.passed_staying) == (101, {})
    made.mark_published(second)
    assert made.passed_staying == {5: 2}
    made.add(staying(104, {5: 1, 6: 1}))
    assert made.pass_idle(104).lsn == 104
    assert made.passed_staying == {5: 3, 6: 1}
    made.passed_staying.clear()
    assert not made.holds_staying()


def test_an_entry_that_was_not_read_is_never_published() -> None:
    """The log was read anew in between, and its numbers are others."""
    made = journal(transaction(101, 1))
    (entry,) = made.first(*ALL)
    made.mark_published(entry)

    with pytest.raises(StateError, match="is not the one that was published"):
        made.mark_published(entry)


@examples(200)
@given(st.lists(st.integers(0, 4), max_size=8), st.data())
def test_whatever_is_published_the_rest_is_read_again(
    sizes: list[int], data: st.DataObject
) -> None:
    """From any checkpoint the log gives all that is not published, under the same numbers."""
    log = [
        transaction(101 + n, size) if size else applied(101 + n, 1 + sizes[:n].count(0))
        for n, size in enumerate(sizes)
    ]
    every = journal(*log).first(*ALL)
    made, published = journal(), list[JournalEntry]()
    for one in (part for whole in log for part in in_parts(whole, data)):
        made.add(one)
        while len(made.entries) > 0 and data.draw(st.booleans()):
            part = made.first(data.draw(st.integers(1, 5)), 10**9)
            made.mark_published(part[-1])
            published += part
            checkpoint = made.pass_idle(0)

            again = LogJournal(checkpoint, captured)
            for behind in (one for one in log if one.lsn >= checkpoint.lsn):
                for part_again in in_parts(behind, data):
                    again.add(part_again)
            assert published + again.first(*ALL) == every
            known = [one.record.csn for one in published if isinstance(one.record, Change)]
            assert checkpoint.csn == max(known, default=None)
    assert made.first(*ALL) == every[len(published) :]
    assert made.bytes == sum(
        len(one.record.after or "") for one in made.entries if isinstance(one.record, Change)
    )
