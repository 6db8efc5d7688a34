"""A resync: its work, its pages, and what counts as sent when somebody starts anew."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.table import ColumnType, Table
from streaming.core.tracking.progress import (
    Accounting,
    Piece,
    PieceAccount,
    ResyncMode,
    WorkKind,
    begin,
)
from streaming.core.tracking.ranges import KeyRange, key_order
from streaming.core.tracking.resync import (
    CoveredPosition,
    PageBound,
    PageRows,
    Resync,
    ResyncPage,
    UnackedPage,
    marked,
    planned_page,
)
from tests.harness.examples import examples
from tests.reference.pages import bound_of

ORDER = key_order(Table("t", ("k",), {"k": ColumnType.INT64}))
SERVED = ("a", "b", "c")
HIDDEN = "z"
STARTED_MS = 1_700_000_000_999
END = 10
HELD = CoveredPosition(4, NOTHING_KNOWN)

names = st.sampled_from((*SERVED, HIDDEN))
counts = st.dictionaries(names, st.integers(0, 9))


def work_of(accounting: Accounting) -> dict[str, tuple[WorkKind, int]]:
    """Table -> (its work, how many rows of it are expected), in the order of sending."""
    pieces = [account.piece for account in accounting.accounts.values()]
    return {one.table: (one.kind, one.rows) for one in pieces}


# -- marking ---------------------------------------------------------------------------------


@examples()
@given(tracked=counts, rows=counts, scans=st.sets(names), is_full=st.booleans())
def test_every_table_of_which_rows_are_lacked_has_its_work(
    tracked: dict[str, int], rows: dict[str, int], scans: set[str], *, is_full: bool
) -> None:
    """All rows of what is scanned or copied, the tracked ones of any other; else nothing.

    A table outside the agreement has only what its consumer wrote there and lost: refreshes, which
    are sent as tracked rows by a full copy too.
    """
    found = work_of(
        marked(SERVED, tracked, rows, scans, is_full=is_full, started_ms=STARTED_MS),
    )

    for table in SERVED:
        if is_full:
            assert found[table] == (WorkKind.FULL_COPY, rows.get(table, 0))
        elif table in scans:
            assert found[table] == (WorkKind.SCAN, rows.get(table, 0))
        elif tracked.get(table):
            assert found[table] == (WorkKind.PAGE, tracked[table])
        else:
            assert table not in found
    hidden = tracked.get(HIDDEN)
    assert found.get(HIDDEN) == ((WorkKind.PAGE, hidden) if hidden else None)


def test_whole_tables_go_first() -> None:
    """A range deletes what the consumer has in flight; what was tracked is then only added."""
    tracked = {"a": 1, "c": 2, HIDDEN: 3}

    found = marked(SERVED, tracked, {"b": 5}, ["b"], is_full=False, started_ms=STARTED_MS)

    assert list(work_of(found)) == ["b", "a", "c", HIDDEN]
    assert (found.mode, found.started_s, found.total_rows) == (
        ResyncMode.INCREMENTAL,
        1_700_000_000,
        11,
    )


# -- pages -----------------------------------------------------------------------------------


def key(number: int) -> str:
    """The key of row `number`."""
    return f'{{"k":"{number}"}}'


def resync_of(pieces: Mapping[str, WorkKind], rows: int = 1) -> Resync:
    """A resync of these tables that has sent nothing."""
    found = [Piece(table, kind, rows) for table, kind in pieces.items()]
    return Resync(END, HELD, STARTED_MS, begin(ResyncMode.INCREMENTAL, 1, found))


def next_page(resync: Resync, keys: Mapping[str, list[str]], page_rows: int) -> ResyncPage:
    """The next page of tables with these keys, in the order of keys."""
    accounting = resync.accounting
    assert accounting is not None

    def left(table: str, after: str | None) -> list[str]:
        return [one for one in keys[table] if after is None or ORDER(one) > ORDER(after)]

    def bound(piece: Piece, room: int) -> PageBound:
        return bound_of(left(piece.table, piece.after), room, ORDER)

    def rows(part: KeyRange) -> PageRows:
        kind = accounting.accounts[part.table].piece.kind
        inside = left(part.table, part.after)
        if part.to is not None:
            inside = [one for one in inside if ORDER(one) <= ORDER(part.to)]
        tracked = () if kind.is_whole else tuple((one, 7) for one in inside)
        return PageRows(part, kind, len(inside), tracked)

    planned = planned_page("to-b", accounting, bound, page_rows)
    return ResyncPage("to-b", accounting, tuple(rows(part) for part in planned.parts))


tables = st.dictionaries(
    st.sampled_from(SERVED),
    st.tuples(
        st.sampled_from((WorkKind.FULL_COPY, WorkKind.SCAN, WorkKind.PAGE)),
        st.sets(st.integers(0, 30)),
    ),
)


@examples()
@given(tables, st.integers(1, 9))
def test_the_pages_of_a_resync_send_each_key_once_and_the_last_one_ends_it(
    work: dict[str, tuple[WorkKind, set[int]]], page_rows: int
) -> None:
    """Page by page, several small tables in one, and one page where there is nothing to send."""
    resync = resync_of({table: kind for table, (kind, _) in work.items()})
    keys = {table: [key(n) for n in sorted(found)] for table, (_, found) in work.items()}
    pages: list[ResyncPage] = []

    while not resync.last_page:
        pages.append(next_page(resync, keys, page_rows))
        resync = resync.page_sent(pages[-1], END + len(pages))

    parts = [one for page in pages for one in page.parts]
    for table, in_order in keys.items():
        mine = [one for one in parts if one.part.table == table]
        assert [one.part.after for one in mine] == [None, *(one.part.to for one in mine[:-1])]
        assert mine[-1].part.to is None
        assert sum(one.rows for one in mine) == len(in_order)
    assert [key for one in parts for key, _ in one.tracked] == [
        key for table, (kind, _) in work.items() if not kind.is_whole for key in keys[table]
    ]
    assert all(sum(one.rows for one in page.parts) <= page_rows for page in pages)
    assert all(sum(one.rows for one in page.parts) == page_rows for page in pages[:-1])
    assert resync.last_page == END + len(pages)


def test_a_resync_of_nothing_ends_with_its_first_page() -> None:
    """A consumer that was silent and lacks nothing is told its new covers, once."""
    resync = resync_of({})
    page = next_page(resync, {}, 5)

    after = resync.page_sent(page, END + 1)

    assert page.parts == ()
    assert not resync.is_sent(END + 1)
    assert after.is_sent(END + 1)


def test_a_resync_is_sent_as_far_as_its_last_page_is() -> None:
    """A page of the changelog that ends below it still holds the position back."""
    resync = replace(resync_of({}), last_page=12)

    assert [resync.is_sent(hub_epoch) for hub_epoch in (0, 11, 12, 13)] == [
        False,
        False,
        True,
        True,
    ]


def test_a_table_that_is_not_sent_whole_stays_open() -> None:
    """Its account has the last key; only the open end closes it."""
    resync = resync_of({"a": WorkKind.SCAN}, rows=3)
    keys = {"a": [key(n) for n in range(3)]}

    page = next_page(resync, keys, 2)
    after = resync.page_sent(page, END + 1)

    assert page.parts == (PageRows(KeyRange("a", None, key(1)), WorkKind.SCAN, 2),)
    assert after.accounting is not None
    assert after.accounting.accounts["a"] == PieceAccount(
        Piece("a", WorkKind.SCAN, 3, key(1)), 3, 2
    )
    assert after.last_page == 0
    assert after.unacked == (UnackedPage(END + 1, (PieceAccount(page_piece(resync), 3),)),)


def page_piece(resync: Resync) -> Piece:
    """The one piece of a resync."""
    assert resync.accounting is not None
    ((_, account),) = resync.accounting.accounts.items()
    return account.piece


# -- what counts as sent -----------------------------------------------------------------------


def whole_history(
    work: Mapping[str, tuple[WorkKind, set[int]]], page_rows: int
) -> tuple[Resync, list[Resync]]:
    """A resync with all its pages sent and none acknowledged, and what it was after each."""
    resync = resync_of({table: kind for table, (kind, _) in work.items()})
    keys = {table: [key(n) for n in sorted(found)] for table, (_, found) in work.items()}
    steps = [resync]
    while not resync.last_page:
        resync = resync.page_sent(next_page(resync, keys, page_rows), END + len(steps))
        steps.append(resync)
    return resync, steps


@examples()
@given(tables, st.integers(1, 9), st.data())
def test_ranges_behind_what_a_consumer_reached_are_sent_anew(
    work: dict[str, tuple[WorkKind, set[int]]], page_rows: int, data: st.DataObject
) -> None:
    """They are in no log. Pages of tracked rows are: these are sent again from there, and count."""
    resync, steps = whole_history(work, page_rows)
    reached = data.draw(st.integers(END, END + len(steps) - 1), label="reached")

    back = resync.goes_on_behind(reached)

    at_that_time, accounting = steps[reached - END].accounting, back.accounting
    assert at_that_time is not None
    assert accounting is not None
    assert resync.accounting is not None
    for name, account in accounting.accounts.items():
        is_range = account.piece.kind.is_whole
        assert account == (at_that_time if is_range else resync.accounting).accounts[name]
    assert back.unacked == ()
    assert back.last_page == (resync.last_page if accounting.is_finished else 0)
    assert (back.end, back.held) == (END, HELD)


@examples()
@given(tables, st.integers(1, 9), st.data())
def test_a_resync_that_was_rolled_back_sends_the_same_pages_again(
    work: dict[str, tuple[WorkKind, set[int]]], page_rows: int, data: st.DataObject
) -> None:
    """From any hub epoch on it comes to its end, with every row of its ranges once more."""
    resync, steps = whole_history(work, page_rows)
    keys = {table: [key(n) for n in sorted(found)] for table, (_, found) in work.items()}
    back = resync.rolled_back(data.draw(st.integers(END, END + len(steps)), label="to"))
    now = END + len(steps)

    while not back.last_page:
        now += 1
        back = back.page_sent(next_page(back, keys, page_rows), now)

    assert back.accounting is not None
    assert back.accounting.is_finished
    assert resync.rolled_back(now) == resync


@given(st.lists(st.integers(11, 30), unique=True).map(sorted), st.integers(0, 31))
def test_a_page_that_is_applied_makes_room_for_another(epochs: list[int], reached: int) -> None:
    """A consumer is sent so many pages ahead of what it has applied, and no more."""
    pages = tuple(UnackedPage(epoch, ()) for epoch in epochs)
    resync = replace(resync_of({}), unacked=pages)

    left = resync.reached(reached)

    assert [page.hub_epoch for page in left.unacked] == [one for one in epochs if one > reached]
    assert replace(left, unacked=pages) == resync


def test_a_resync_is_the_same_until_a_page_of_it_is_sent() -> None:
    """A page that was planned for another state of it is not sent."""
    resync = resync_of({"a": WorkKind.SCAN})
    sent = resync.page_sent(next_page(resync, {"a": [key(1)]}, 5), END + 1)

    assert resync.is_same(replace(resync, unacked=(UnackedPage(9, ()),)))
    assert not resync.is_same(sent)
    assert not resync.is_same(replace(resync, end=END + 1))
    assert not resync.is_same(None)
