"""Each piece of work is at one worker, comes back if that one dies, and is counted once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from streaming.core.model.errors import StateError
from streaming.core.tracking.incarnation import AtHub, TableIncarnation, WorkKind
from streaming.core.tracking.meta import ResyncMode
from streaming.core.tracking.progress import (
    WHOLE,
    Accounting,
    ResyncProgress,
    begin,
    estimated_end,
    progress,
)
from streaming.core.tracking.work import (
    Piece,
    ResyncStep,
    WorkQueue,
    is_valid,
    next_pieces,
    next_step,
)
from tests.harness.examples import examples

WORKERS = ("w1", "w2", "w3")
GROUP_ROWS = 10
PAGE_ROWS = 3
kinds = st.sampled_from(WorkKind)
piece_lists = st.lists(st.tuples(kinds, st.integers(0, 15)), max_size=6).map(
    lambda found: tuple(Piece(f"t{n}", 1, kind, rows) for n, (kind, rows) in enumerate(found))
)


@examples()
@given(piece_lists)
def test_a_worker_takes_one_table_or_a_group_of_pages(waiting: tuple[Piece, ...]) -> None:
    """A group is bounded; only a single table with more rows than that is over the bound."""
    taken = next_pieces(waiting, GROUP_ROWS)

    assert bool(taken) == bool(waiting)
    assert taken[:1] == waiting[:1]
    if len(taken) > 1:
        assert {piece.kind for piece in taken} == {WorkKind.PAGE}
        assert sum(piece.rows for piece in taken) <= GROUP_ROWS
        assert list(taken) == [piece for piece in waiting if piece in taken]


class Resync(RuleBasedStateMachine):
    """Workers prepare pages, one writer commits them; workers and the hub die at any moment.

    The rows of a table are its numbers from 0; a piece goes on behind `after`. The writer commits
    what a worker has prepared only while that worker has the piece.
    """

    queue = WorkQueue()
    accounting: Accounting
    rows: dict[str, int]
    sent: dict[str, list[int]]

    @initialize(pieces=piece_lists)
    def start(self, pieces: tuple[Piece, ...]) -> None:
        """Fix the tables and how many rows each has."""
        self.accounting = begin(ResyncMode.INCREMENTAL, 1000, pieces)
        self.queue = self.accounting.remaining()
        self.rows = {piece.table: piece.rows for piece in pieces}
        self.sent = {piece.table: [] for piece in pieces}

    @rule(worker=st.sampled_from(WORKERS))
    def pick(self, worker: str) -> None:
        """A worker asks for work; asking twice gives the same."""
        had = self.queue.taken.get(worker)
        self.queue, pieces = self.queue.pick(worker, GROUP_ROWS)
        assert had is None or pieces == had
        assert self.queue.pick(worker, GROUP_ROWS) == (self.queue, pieces)

    @rule(data=st.data())
    @precondition(lambda self: bool(self.queue.taken))
    def commit_a_page(self, data: st.DataObject) -> None:
        """The writer sends a page of what a worker has, and commits it with the accounting."""
        worker = data.draw(st.sampled_from(sorted(self.queue.taken)))
        piece = data.draw(st.sampled_from(self.queue.taken[worker]))
        account = self.accounting.accounts[piece.name]
        first = 0 if account.piece.after is None else int(account.piece.after) + 1
        page = list(range(first, min(first + PAGE_ROWS, self.rows[piece.table])))
        is_last = first + len(page) == self.rows[piece.table]
        after = str(page[-1]) if page else None
        self.accounting = self.accounting.page_sent(piece.name, len(page), after, is_last=is_last)
        self.sent[piece.table].extend(page)
        if is_last:
            self.queue = self.queue.finished(worker, piece)

    @rule(worker=st.sampled_from(WORKERS))
    def worker_dies(self, worker: str) -> None:
        """What it had waits again, in front; what the others have is theirs."""
        had = self.queue.taken.get(worker, ())
        self.queue = self.queue.given_back(worker)
        assert self.queue.waiting[: len(had)] == had
        assert worker not in self.queue.taken

    @rule()
    def hub_dies(self) -> None:
        """Only what was committed is left."""
        self.queue = self.accounting.remaining()

    @rule(data=st.data())
    @precondition(lambda self: bool(self.rows))
    def table_grows(self, data: st.DataObject) -> None:
        """A scan meets rows that were not counted when it began."""
        table = data.draw(st.sampled_from(sorted(self.rows)))
        if not self.accounting.accounts[table, 1].is_closed:
            self.rows[table] += 1

    @invariant()
    def each_open_piece_is_in_one_place(self) -> None:
        """Waiting, or at one worker; a closed one in none."""
        if not hasattr(self, "accounting"):
            return
        held = [p.name for pieces in self.queue.taken.values() for p in pieces]
        everywhere = [*held, *(p.name for p in self.queue.waiting)]
        open_ = [n for n, account in self.accounting.accounts.items() if not account.is_closed]
        assert sorted(everywhere) == sorted(open_)
        assert self.queue.in_flight == len(held)

    @invariant()
    def progress_never_exceeds_the_total(self) -> None:
        """And nothing is sent twice, or left out, by any death."""
        if not hasattr(self, "accounting"):
            return
        assert self.accounting.sent_rows <= self.accounting.total_rows
        for (table, _), account in self.accounting.accounts.items():
            assert self.sent[table] == list(range(len(self.sent[table])))
            assert account.sent <= account.total
            if account.is_closed:
                assert len(self.sent[table]) == self.rows[table]
        if self.accounting.is_finished:
            assert self.accounting.sent_rows == self.accounting.total_rows
            assert self.accounting.tables_left == 0


TestResync = Resync.TestCase
TestResync.settings = examples(60)


def test_a_table_is_once_in_a_queue() -> None:
    """Two workers would send its pages in two orders."""
    piece = Piece("t", 1, WorkKind.SCAN, 3)
    queue, _ = WorkQueue((piece,)).pick("w1", GROUP_ROWS)

    assert queue.with_piece(piece._replace(incarnation=2)).in_flight == 1
    with pytest.raises(StateError, match="twice in one resync"):
        queue.with_piece(piece._replace(rows=9))


def test_a_page_behind_the_last_one_is_refused() -> None:
    """It would raise what is counted above what was sent."""
    piece = Piece("t", 1, WorkKind.SCAN, 3)
    closed = begin(ResyncMode.FULL, 0, [piece]).page_sent(piece.name, 3, "2", is_last=True)

    with pytest.raises(StateError, match="came after its last"):
        closed.page_sent(piece.name, 1, "3", is_last=False)


def test_rows_that_went_live_are_counted_when_the_table_is_closed() -> None:
    """A page leaves out what was written again; the resync ends at all of it nevertheless."""
    piece = Piece("t", 1, WorkKind.PAGE, 10)
    accounting = begin(ResyncMode.INCREMENTAL, 0, [piece])

    half = accounting.page_sent(piece.name, 4, "d", is_last=False)
    closed = half.page_sent(piece.name, 1, "z", is_last=True)

    assert (half.sent_rows, half.total_rows, half.is_finished) == (4, 10, False)
    assert half.remaining().waiting == (piece._replace(rows=6, after="d"),)
    assert (closed.sent_rows, closed.total_rows, closed.is_finished) == (10, 10, True)


def test_a_table_whose_incarnation_ended_is_counted_no_more() -> None:
    """Its truncate goes live."""
    pieces = [Piece("t", 1, WorkKind.SCAN, 5), Piece("u", 1, WorkKind.SCAN, 2)]

    left = begin(ResyncMode.FULL, 0, pieces).without(("t", 1))

    assert (left.total_rows, left.tables_left) == (2, 1)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (TableIncarnation("t", 2, work=WorkKind.SCAN), True),
        (TableIncarnation("t", 3, work=WorkKind.SCAN), False),
        (TableIncarnation("t", 2, AtHub.DROPPING, work=WorkKind.SCAN), False),
        (TableIncarnation("t", 2, work=WorkKind.PAGE), False),
        (TableIncarnation("t", 2), False),
        (None, False),
    ],
)
def test_a_piece_is_sent_only_for_the_incarnation_it_was_made_of(
    now: TableIncarnation | None, *, expected: bool
) -> None:
    """Its rows are those of before the truncate."""
    assert is_valid(Piece("t", 2, WorkKind.SCAN, 9), now) is expected


@pytest.mark.parametrize(
    ("has_table", "in_queue", "open_appends", "expected"),
    [
        (True, 3, 1, ResyncStep.QUEUE_TABLE),
        (True, 4, 0, ResyncStep.WAIT_FOR_WORKERS),
        (False, 1, 0, ResyncStep.WAIT_FOR_WORKERS),
        (False, 1, 1, ResyncStep.WAIT_FOR_WORKERS),
        (False, 0, 1, ResyncStep.CATCH_UP_AND_LOOK_AGAIN),
        (False, 0, 0, ResyncStep.CATCH_UP_AND_FINISH),
    ],
)
def test_a_resync_finishes_when_nothing_is_at_workers_and_nothing_is_appended(
    *, has_table: bool, in_queue: int, open_appends: int, expected: ResyncStep
) -> None:
    """A full queue waits; rows that are still appended are caught up with once more."""
    step = next_step(
        has_table=has_table, in_queue=in_queue, open_appends=open_appends, queue_size=4
    )

    assert step is expected


@examples()
@given(st.integers(0, 10**9), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_an_estimate_is_in_the_future_or_nothing(
    start: int, elapsed: int, total: int, done: int
) -> None:
    """In proportion to what was done so far; nothing at the beginning and at the end."""
    now = start + elapsed

    end = estimated_end(start, now, total, done)

    if 0 < done < total:
        assert end is not None
        assert now <= end
        assert (end - now) * done <= elapsed * (total - done) < (end - now + 1) * done
    else:
        assert end is None


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.none() | st.integers(1, 10**9))
def test_all_of_it_is_shown_only_when_it_is_over(done: int, total: int, end: int | None) -> None:
    """Rounding never announces the end; the state does."""
    done = min(done, total)

    running = _shown(done, total, end, is_over=False)
    over = _shown(done, total, end, is_over=True)

    assert over.percent == WHOLE
    assert (running.percent is None) == (end is None or total == 0)
    assert running.percent is None or 0 <= running.percent < WHOLE
    assert running.total == (None if end is None else total)


def _shown(done: int, total: int, end: int | None, *, is_over: bool) -> ResyncProgress:
    return progress(
        ResyncMode.FULL,
        is_over=is_over,
        done=done,
        total=total,
        estimated_end_s=end,
        objects=2,
        objects_left=1,
    )
