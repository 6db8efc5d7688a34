"""Who wins: the author and epoch rule, realignment, and what becomes of the row."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.conflict.judge import (
    Cause,
    ConflictKind,
    Judged,
    Verdict,
    conflict_kind,
    judge,
    merged,
    rejected_whole,
    rejects_transaction,
)
from streaming.core.conflict.winner import Failed
from streaming.core.model.change import NOBODY, Change, Op
from streaming.core.model.function import ConflictFunction, ConflictRule
from streaming.core.model.row import (
    ALL_OFFSETS,
    Arrived,
    Floor,
    Realign,
    RowState,
    blocking_epoch,
    realigned,
)
from streaming.core.records.record import Reason
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import COLUMNS, T

ME, OTHER = 1, 2
NOW = 9
LAST_WINS = replace(T, function=ConflictFunction(ConflictRule.PASS))
OFFSET = 5


def arrived(one: Change | None = None, mre: int = 3, mre_same: int | None = None) -> Arrived:
    """A change of mine at OFFSET, by a replica that had seen hub epochs up to `mre`."""
    same = mre if mre_same is None else mre_same
    return Arrived(one or change(10), "content", "1-1", OFFSET, 0, mre, same)


def row(author: int = OTHER, epoch: int = 1, *realign: Realign, exists: bool = True) -> RowState:
    """A row as it stands at the hub."""
    image = '{"k":"k","v":"old"}' if exists else None
    return RowState(author, epoch, csn(1, author), exists, image, realign)


CASES = {
    "seen": (row(epoch=2), False),
    "just seen: equality is not concurrent": (row(epoch=3), False),
    "not seen": (row(epoch=4), True),
    "my own, whatever I reflected": (row(author=ME, epoch=4), False),
    "nobody's": (RowState(NOBODY, 0), False),
    "a tombstone that I saw": (row(epoch=3, exists=False), False),
    "a tombstone that I did not see": (row(epoch=4, exists=False), True),
    "seen, but a refresh is on its way to me": (row(ME, 1, Realign(ME, 4)), True),
    "the refresh came": (row(ME, 1, Realign(ME, 3)), False),
    "a refresh is on its way to another": (row(ME, 1, Realign(OTHER, 8)), False),
    "a repair's, behind me in the topic": (row(ME, 1, Realign(ME, 8, OFFSET)), False),
    "a repair's, before me in the topic": (row(ME, 1, Realign(ME, 8, OFFSET - 1)), True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_change_is_concurrent_with_what_its_replica_had_not_seen(
    case: tuple[RowState, bool],
) -> None:
    """The rule (docs/protocol.md, Judging), clause by clause."""
    before, concurrent = case

    judged = judge(arrived(), before, NOW, T)

    assert judged.concurrent is concurrent
    assert judged.verdict is (Verdict.REJECTED if concurrent else Verdict.ACCEPTED)
    assert (judged.conflict is not None) is concurrent


@pytest.mark.parametrize(("floor", "concurrent"), [(3, False), (4, True)])
def test_a_floor_realigns_every_row(*, floor: int, concurrent: bool) -> None:
    """Whatever is known of the row; the changelog names the epoch that the replica lacked."""
    judged = judge(arrived(), RowState(), NOW, T, [Floor(floor, 0)])

    assert (judged.concurrent, judged.realign_epoch) == (concurrent, floor if concurrent else 0)


def test_an_accepted_change_is_the_row() -> None:
    """With its author, this hub epoch and its CSN; the realigns of others stay."""
    before = row(OTHER, 2, Realign(OTHER, 2))

    after = judge(arrived(), before, NOW, T).after

    image = '{"k":"k","v":"v"}'
    assert after == RowState(
        ME, NOW, csn(10, ME), exists=True, image=image, realign=(Realign(OTHER, 2),)
    )


def test_an_accepted_delete_leaves_a_tombstone() -> None:
    """It keeps author and epoch: otherwise a concurrent insert would be accepted."""
    refresh = Realign(OTHER, 2)

    after = judge(arrived(change(10, value=None)), row(OTHER, 1, refresh), NOW, T).after

    assert after == RowState(ME, NOW, csn(10, ME), realign=(refresh,))


def test_a_loser_leaves_the_row_and_realigns_its_replica() -> None:
    """The row wins as it stands; nobody else is blocked."""
    before = row(epoch=4)

    after = judge(arrived(), before, NOW, T).after

    assert after == before._replace(realign=(Realign(ME, NOW),))


def test_a_change_that_lacks_columns_needs_the_image_of_its_row() -> None:
    """A row whose image cannot be read is written whole or not at all."""
    before = row(epoch=2)._replace(image=None)
    partial = arrived(change(10)._replace(after='{"k":"k"}'))

    assert judge(partial, before, NOW, T).failure == Failed(
        "it lacks columns, and the image of its row at the hub cannot be read: write the whole row"
        " again",
        Reason.TABLE,
    )
    assert judge(arrived(), before, NOW, T).verdict is Verdict.ACCEPTED
    assert judge(partial, RowState(), NOW, T).verdict is Verdict.ACCEPTED


def test_a_change_whose_function_fails_keeps_what_it_was_judged_by() -> None:
    """The changelog and the counters need it, as of any other change in conflict."""
    one, before, failed = arrived(mre_same=8), row(OTHER, 4, Realign(ME, 5)), Failed("oh")

    judged = judge(one, before, NOW, T, resolve=lambda *_: failed)

    assert judged == Judged(
        one,
        Verdict.QUARANTINED,
        Cause.AUTHOR,
        realign_epoch=5,
        before=before,
        after=before._replace(realign=(Realign(ME, NOW),)),
        same_epoch_only=True,
        failure=failed,
    )


def test_a_change_that_goes_with_its_transaction_keeps_what_blocked_it() -> None:
    """A realign, a floor, or nothing; and whether its own epoch's reflection would have done."""
    before, floors = row(OTHER, 2, Realign(ME, 4)), [Floor(8, 0)]

    judged = rejected_whole(arrived(), before, NOW, None, floors, same_epoch_only=True)

    after = before._replace(realign=(Realign(ME, NOW, rejects_transaction=True),))
    assert judged == Judged(
        arrived(),
        Verdict.REJECTED,
        Cause.TRANSACTION,
        8,
        before,
        after,
        ConflictKind.TRANSACTION,
        same_epoch_only=True,
    )
    alone = rejected_whole(arrived(), before, NOW, Cause.REALIGN, same_epoch_only=False)
    assert (alone.cause, alone.realign_epoch) == (Cause.REALIGN, 4)


@pytest.mark.parametrize(
    ("floor", "lost"),
    [
        pytest.param(Floor(8, 0, csn(0, ME), csn(1, ME)), True, id="it had lost the version"),
        pytest.param(Floor(8, 0, csn(1, ME), csn(2, ME)), False, id="it had kept the version"),
    ],
)
def test_who_overwrites_an_own_version_that_it_had_lost_wins_over_it(
    *, floor: Floor, lost: bool
) -> None:
    """It had not seen that version, although it is the author."""
    judged = judge(arrived(), row(author=ME), NOW, LAST_WINS, [floor])

    assert (judged.verdict, judged.row_lost) == (Verdict.ACCEPTED, lost)


def test_what_a_later_hello_reports_as_lost_was_seen_by_what_stands_before_it() -> None:
    """The change was written when its replica still had that version."""
    floors = [Floor(8, 0), Floor(9, OFFSET + 1, csn(0, ME), csn(1, ME))]

    judged = judge(arrived(), row(author=ME), NOW, LAST_WINS, floors)

    assert (judged.concurrent, judged.row_lost) == (True, False)


def test_equal_content_does_not_matter() -> None:
    """Who wrote the same by chance has seen nothing."""
    same = change(10, value="old")

    assert judge(arrived(same), row(epoch=4), NOW, T).concurrent


KINDS = [
    (Op.INSERT, True, ConflictKind.INSERT_EXISTS),
    (Op.UPDATE, True, ConflictKind.UPDATE_ORIGIN_CHANGE),
    (Op.DELETE, True, ConflictKind.DELETE_RECENTLY_UPDATED),
    (Op.INSERT, False, ConflictKind.UPDATE_RECENTLY_DELETED),
    (Op.UPDATE, False, ConflictKind.UPDATE_RECENTLY_DELETED),
    (Op.DELETE, False, ConflictKind.DELETE_RECENTLY_DELETED),
]


@pytest.mark.parametrize(("op", "exists", "kind"), KINDS)
def test_a_conflict_is_called_by_what_met(*, op: Op, exists: bool, kind: ConflictKind) -> None:
    """As EDB Postgres Distributed calls it."""
    assert conflict_kind(op, exists=exists) is kind


@pytest.mark.parametrize(
    ("mre", "mre_same", "realign", "expected"),
    [
        pytest.param(3, 4, (), True, id="its own epoch's reflection would have done"),
        pytest.param(3, 3, (), False, id="it would not"),
        pytest.param(4, 4, (), False, id="not concurrent at all"),
        pytest.param(3, 4, (Realign(ME, 8),), False, id="a refresh was on its way as well"),
        pytest.param(3, 4, (Realign(ME, 8, OFFSET),), True, id="a repair behind it counts not"),
    ],
)
def test_what_only_the_same_epoch_rule_made_a_conflict_is_known(
    *, mre: int, mre_same: int, realign: tuple[Realign, ...], expected: bool
) -> None:
    """Such conflicts are counted apart."""
    judged = judge(arrived(mre=mre, mre_same=mre_same), row(OTHER, 4, *realign), NOW, T)

    assert judged.same_epoch_only is expected


def test_what_only_a_floor_made_a_conflict_is_not_of_the_same_epoch() -> None:
    """No reflection of its own epoch would have lifted the floor."""
    judged = judge(arrived(mre=3, mre_same=4), row(OTHER, 2), NOW, T, [Floor(8, 0)])

    assert judged.concurrent
    assert not judged.same_epoch_only


@pytest.mark.parametrize(
    ("snapshot", "is_refused", "verdict"),
    [
        ("s", True, Verdict.REJECTED),
        ("s", False, Verdict.ACCEPTED),
        (None, True, Verdict.ACCEPTED),
    ],
)
def test_a_told_row_does_not_overwrite_what_its_replica_refused(
    snapshot: str | None, verdict: Verdict, *, is_refused: bool
) -> None:
    """Whatever the function: nobody there wrote it, and it lacks what was refused."""
    told = arrived(change(10)._replace(snapshot=snapshot), mre=0)

    judged = judge(told, row(epoch=2), NOW, LAST_WINS, is_refused=is_refused)

    assert judged.verdict is verdict
    assert Realign(ME, NOW) in judged.after.realign


realigns = st.builds(
    Realign,
    st.integers(1, 2),
    st.integers(1, 6),
    st.integers(-1, 6),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(realigns, max_size=12), st.integers(0, 8), st.integers(1, 2))
def test_a_realign_that_was_left_out_blocked_nothing_more(
    added: list[Realign], offset: int, rid: int
) -> None:
    """The row blocks what all of them together would block, alone or with its transaction."""
    before = RowState()
    for one in added:
        before = realigned(before, one)

    later = arrived()._replace(change=change(1, rid=rid), offset=offset)
    blocks = [r for r in added if r.rid == rid and r.offset < offset]
    blocks_whole = [r.hub_epoch for r in blocks if r.rejects_transaction]

    assert blocking_epoch(later, before) == max((r.hub_epoch for r in blocks), default=0)
    for mre in range(7):
        expected = any(epoch > mre for epoch in blocks_whole)
        is_whole = rejects_transaction(
            later._replace(mre=mre), before, T.function, is_refused=False, is_left=False
        )
        assert is_whole is expected


@given(st.lists(realigns, max_size=12))
def test_no_realign_of_a_row_dominates_another_one(added: list[Realign]) -> None:
    """A row keeps one per replica, hub epoch and kind at most, however many were added.

    That of a range is a kind of its own: it does not say when the row itself was sent.
    """
    row = RowState()
    for one in added:
        row = realigned(row, one)

    kept = row.realign

    assert not [(one, other) for one, other in permutations(kept, 2) if one.dominates(other)]
    assert len(kept) == len(
        {(r.rid, r.hub_epoch, r.rejects_transaction, r.is_of_range) for r in kept}
    )


def test_a_realign_for_all_offsets_leaves_no_other_of_its_replica() -> None:
    """A row that is fought over for ever does not grow."""
    before = row(OTHER, 4, Realign(ME, 5, 3), Realign(OTHER, 5, 3), Realign(ME, 4))

    assert realigned(before, Realign(ME, 9, ALL_OFFSETS)).realign == (
        Realign(OTHER, 5, 3),
        Realign(ME, 9),
    )


MERGES = [
    ('{"k":"a","v":"1"}', '{"k":"a","v":"2"}', '{"k":"a","v":"2"}'),
    ('{"k":"a","v":"1"}', '{"k":"a"}', '{"k":"a","v":"1"}'),
    ('{"k":"a","v":null}', '{"k":"a"}', '{"k":"a","v":null}'),
    ('{"v":"ü"}', '{"k":"a"}', '{"k":"a","v":"ü"}'),
    (None, '{"k":"a"}', '{"k":"a"}'),
    ('{"k":"a","v":"1"}', None, None),
]


@pytest.mark.parametrize(("old", "new", "expected"), MERGES)
def test_an_absent_column_stays_as_it_was(
    old: str | None, new: str | None, expected: str | None
) -> None:
    """Absent is unknown, not null; the columns keep the order of the schema."""
    assert merged(old, new, COLUMNS) == expected


def test_a_verdict_tells_the_row_before_and_after() -> None:
    """The changelog keeps what it was judged by."""
    judged = judge(arrived(), row(epoch=4), NOW, T)

    assert isinstance(judged, Judged)
    assert judged.before == row(epoch=4)
    assert judged.realign_epoch == 0
