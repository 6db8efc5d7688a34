"""What the log holds is numbered by the log alone: the same whenever it is read."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from connectors.agent.contract import JournalEntry
from connectors.agent.images import WireImage
from connectors.postgres.log.fold import (
    ORDINAL_BITS,
    Captured,
    Cut,
    FoldState,
    Limit,
    Numbering,
    numbered,
)
from connectors.postgres.log.transactions import LogTransaction, Whose
from connectors.postgres.messages import AppliedMessage, EpochMessage, SnapshotRows
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import Generator, parse
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.records.record import Applied, Commit, Refused, Snapshot
from tests.harness.examples import examples

RID = 7
START = FoldState(Generator(RID, 100, 5), opno=10, epoch=3)
REFUSED = Refused(9, "0" * 20, "t", '{"id":1}', "unique", "taken")


def image(text: str, *faults: str) -> WireImage:
    """An image in which all is known."""
    return WireImage(text, text, faults)


def written(id_: int, op: Op = Op.INSERT) -> Captured:
    """A change of a row."""
    row = image(f'{{"id":{id_}}}')
    return Captured("t", op, row, None if op is Op.INSERT else row, row)


def applied(epoch: int, seen: tuple[int, int] = (0, 0)) -> AppliedMessage:
    """A batch was applied in this epoch."""
    return AppliedMessage(Applied(epoch, 4, 1, NOTHING_KNOWN, 4), "s1", seen)


def changes(entries: Sequence[JournalEntry]) -> list[Change]:
    """Those of the entries that are changes."""
    return [one.record for one in entries if isinstance(one.record, Change)]


def test_a_transaction_of_several_changes_has_a_name_and_an_end() -> None:
    """One of a single change has neither."""
    alone, _ = numbered(START, LogTransaction(1, 2, 200, Whose.LOCAL), [written(1)])
    several, state = numbered(
        START, LogTransaction(1, 2, 200, Whose.LOCAL), [written(1), written(2)]
    )

    assert [one.record for one in alone] == changes(alone)
    assert changes(alone)[0].prim_csn is None
    first, second = changes(several)
    assert (first.prim_csn, second.prim_csn) == (first.csn, first.csn)
    assert several[-1].record == Commit(first.csn)
    assert (parse(first.csn).time_s, parse(second.csn).sequence) == (200, 1)
    assert (first.opno, second.opno, state.opno) == (11, 12, 12)


def test_a_time_that_steps_back_is_not_followed() -> None:
    """Commits stand in the log out of the order of their times, by some milliseconds."""
    entries, state = numbered(START, LogTransaction(1, 2, 99, Whose.LOCAL), [written(1)])

    assert (state.generator.time_s, state.generator.sequence) == (100, 6)
    assert changes(entries)[0].csn > f"{100:08x}0005"


def test_what_stands_behind_an_applied_has_the_next_epoch_and_a_larger_csn() -> None:
    """It overwrote what the batch left, whatever its transaction had read before."""
    own = LogTransaction(1, 2, 200, Whose.OWN, messages=(REFUSED, applied(3, (500, 9))))

    told, state = numbered(START, own, [])
    behind, _ = numbered(state, LogTransaction(2, 3, 300, Whose.LOCAL), [written(1)])

    assert [one.record for one in told] == [REFUSED, own.messages[1].applied]  # type: ignore[union-attr]
    assert [one.session for one in told] == [None, "s1"]
    (change,) = changes(behind)
    assert change.epoch == 4
    assert (parse(change.csn).time_s, parse(change.csn).sequence) == (500, 10)


def test_an_epoch_that_the_topic_has_passed_is_raised_at_its_place() -> None:
    """What was written before keeps its own."""
    own = LogTransaction(1, 2, 200, Whose.OWN, messages=(EpochMessage(40),))

    entries, state = numbered(START, own, [])

    assert (entries, state.epoch) == ([], 40)


def test_the_rows_of_a_snapshot_are_numbered_where_they_were_told() -> None:
    """Each is a transaction of its own."""
    begin, rows = Snapshot("begin", "x", "t"), SnapshotRows("x", "t", (("k1", "a1"), ("k2", "a2")))

    entries, state = numbered(START, LogTransaction(1, 2, 0, Whose.OWN, messages=(begin, rows)), [])

    assert entries[0].record == begin
    assert [(one.key, one.after, one.snapshot) for one in changes(entries)] == [
        ("k1", "a1", "x"),
        ("k2", "a2", "x"),
    ]
    assert [one.opno for one in changes(entries)] == [11, 12]
    assert state.opno == 12
    assert {one.prim_csn for one in changes(entries)} == {None}


def test_a_delete_of_a_key_that_nobody_can_have_goes_alone() -> None:
    """The transaction would go to quarantine with it."""
    bad = Captured("t", Op.DELETE, image('{"id":{"text":"x"}}', "id: cannot be carried"))

    first, second, commit = numbered(
        START, LogTransaction(1, 2, 0, Whose.LOCAL), [written(1), bad]
    )[0]

    assert isinstance(second.record, Change)
    assert second.record.prim_csn is None
    assert second.faults == ("id: cannot be carried",)
    assert second.within == first.transaction == commit.transaction


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[LogTransaction, list[Captured]]]:
    """Transactions of clients, and own applies between them."""
    found, epoch = list[tuple[LogTransaction, list[Captured]]](), START.epoch
    for place in range(draw(st.integers(1, 12))):
        commit_s = draw(st.integers(0, 110) | st.sampled_from([0, 2**32 - 1]))
        if draw(st.booleans()):
            seen = (draw(st.integers(0, 120)), draw(st.sampled_from([0, 7, 0xFFFF])))
            own = LogTransaction(
                place, place + 1, commit_s, Whose.OWN, messages=(applied(epoch, seen),)
            )
            found.append((own, []))
            epoch += 1
        else:
            writes = [written(n) for n in range(draw(st.integers(0, 3)))]
            found.append((LogTransaction(place, place + 1, commit_s, Whose.LOCAL), writes))
    return found


@examples(200)
@given(logs(), st.integers(0, 12))
def test_a_log_is_numbered_alike_from_wherever_it_is_read(
    log: list[tuple[LogTransaction, list[Captured]]], start: int
) -> None:
    """CSNs rise, opnos have no hole, and epochs count the applies before."""
    entries, states, applies = list[list[JournalEntry]](), [START], START.epoch
    for transaction, captured in log:
        told, state = numbered(states[-1], transaction, captured)
        assert {one.epoch for one in changes(told)} <= {applies}
        applies += transaction.whose is Whose.OWN
        entries.append(told)
        states.append(state)
    every = [one for told in entries for one in told]

    csns = [one.csn for one in changes(every)]
    assert csns == sorted(set(csns))
    assert [one.opno for one in changes(every)] == list(range(11, 11 + len(csns)))
    ids = [one.id for one in every]
    assert ids == sorted(set(ids))
    start = min(start, len(log))
    again, state = list[list[JournalEntry]](), states[start]
    for transaction, captured in log[start:]:
        told, state = numbered(state, transaction, captured)
        again.append(told)
    assert again == entries[start:]
    assert state == states[-1]


@st.composite
def numberings(draw: st.DrawFn) -> Numbering:
    """What may be decided about numbers within one of the first transactions of a log."""
    at = (draw(st.integers(0, 3)) << ORDINAL_BITS) + draw(st.integers(-1, 4))
    generator = Generator(RID, draw(st.integers(0, 200)), 3)
    cut = Cut(at, generator, draw(st.integers(0, 90)), draw(st.booleans()))
    limit = Limit(draw(st.integers(0, 90)), draw(st.integers(0, 4)))
    return Numbering(draw(st.sampled_from([None, cut])), draw(st.sampled_from([None, limit])))


@examples(200)
@given(logs(), numberings(), st.data())
def test_in_parts_a_transaction_has_the_numbers_that_it_has_whole(
    log: list[tuple[LogTransaction, list[Captured]]], numbering: Numbering, data: st.DataObject
) -> None:
    """A large one is read in parts, and whoever reads it again may read other ones."""
    whole, parts, state, in_parts = list[JournalEntry](), list[JournalEntry](), START, START
    for transaction, captured in log:
        told, state = numbered(state, transaction, captured, numbering)
        whole += told
        rest, part = captured, replace(transaction, end_lsn=None, messages=())
        while data.draw(st.booleans()):
            size = data.draw(st.integers(0, 2))
            told, in_parts = numbered(in_parts, part, rest[:size], numbering)
            parts, rest = parts + told, rest[size:]
        told, in_parts = numbered(in_parts, transaction, rest, numbering)
        parts += told

    assert parts == whole
    assert in_parts == state
