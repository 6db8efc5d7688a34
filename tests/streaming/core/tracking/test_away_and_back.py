"""A consumer that goes away and comes back, again and again, ends with the hub's rows.

All of tracking together: logs and their compaction, marks, drops, pages, ranges, the queue and its
accounting, held positions. One table is written, deleted from and truncated; the consumer is lost
at any moment, the hub dies at any moment, and what was not acknowledged may or may not be there.
"""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.tracking.entry import HubPosition, TrackedRow, changed_rows
from streaming.core.tracking.held import CoveredPosition, announced
from streaming.core.tracking.incarnation import (
    AtHub,
    TableAction,
    TableIncarnation,
    WorkKind,
    incarnations_of,
    steps,
)
from streaming.core.tracking.logs import TrackingLogs, after_step, compacted, full_round
from streaming.core.tracking.marking import mark
from streaming.core.tracking.meta import (
    OutageStart,
    TrackingMeta,
    after_tracking_failed,
    outage_start,
)
from streaming.core.tracking.paging import PageDecision, next_page, page_rule
from streaming.core.tracking.progress import Accounting, begin
from streaming.core.tracking.ranges import SortKey, scanned_page
from streaming.core.tracking.states import TrackingEvent, TrackingState, moved
from streaming.core.tracking.work import Piece, WorkQueue, is_valid
from tests.harness.examples import examples

KEYS = ("a", "b", "c", "d", "e")
PAGE_ROWS = 2
Rows = dict[str, HubPosition]


def order(key: str) -> SortKey:
    """Keys compare as they are."""
    return ((key,),)


class AwayAndBack(RuleBasedStateMachine):
    """One agreement, one table; a row is the position of its last write."""

    @initialize()
    def start(self) -> None:
        """Both sides have the empty table."""
        self.epoch = 1
        self.number = 1
        self.rows: Rows = {}
        self.last: Rows = {}  # last write of each key, deletes too
        self.changelog: list[TrackedRow] = []
        self.state = TrackingState.IN_SYNC
        self.logs = TrackingLogs()
        self.meta = TrackingMeta()
        self.is_copied = False  # a full copy was begun and not acknowledged
        self.consumer: Rows = {}
        self.covers = 1
        self.acked_number = 1
        self.acked_rows: Rows = {}
        self.tables: tuple[TableIncarnation, ...] = ()
        self.compact: dict[str, HubPosition] = {}
        self.accounting: Accounting | None = None
        self.queue = WorkQueue()

    # -- the hub judges a change -------------------------------------------------------------

    @rule(key=st.sampled_from(KEYS), is_delete=st.booleans())
    def write(self, key: str, *, is_delete: bool) -> None:
        """A change of another replica is accepted; live, or tracked."""
        self.epoch += 1
        position = HubPosition(self.epoch)
        self.last[key] = position
        self._set(self.rows, key, None if is_delete else position)
        if self.state is not TrackingState.CHANGE_TRACKING:
            self._set(self.consumer, key, None if is_delete else position)
        self._log(TrackedRow("t", self.number, key, position))
        self._live()

    @rule()
    def truncate(self) -> None:
        """The incarnation ends; live, or by a drop."""
        self.epoch += 1
        self.number += 1
        self.rows, self.last = {}, {}
        if self.state is not TrackingState.CHANGE_TRACKING:
            self.consumer = {}
        if self.state is TrackingState.RESYNC:
            self._end_incarnation()
        self._live()

    def _set(self, rows: Rows, key: str, position: HubPosition | None) -> None:
        if position is None:
            rows.pop(key, None)
        else:
            rows[key] = position

    def _log(self, entry: TrackedRow) -> None:
        self.changelog.append(entry)
        if self.state is TrackingState.CHANGE_TRACKING and not self.meta.is_full:
            self.logs = self.logs.with_entries([entry])

    def _live(self) -> None:
        """A live batch: it moves covers, but not in a resync."""
        if self.state is TrackingState.CHANGE_TRACKING:
            return
        held = self.covers if self.state is TrackingState.RESYNC else None
        self._announce(held, is_last_page=False)
        if held is None:
            self._acknowledge()

    def _announce(self, held: int | None, *, is_last_page: bool) -> None:
        position = None if held is None else CoveredPosition(held, NOTHING_KNOWN)
        now = CoveredPosition(self.epoch, NOTHING_KNOWN)
        self.covers = announced(position, now, is_last_page=is_last_page).covers

    def _acknowledge(self) -> None:
        self.acked_rows, self.acked_number = dict(self.consumer), self.number

    def _end_incarnation(self) -> None:
        """The truncate went live, so nothing of the old incarnation is sent any more."""
        assert self.accounting is not None
        self.tables = incarnations_of(TableIncarnation("t", self.number), self.number)
        for name in list(self.accounting.accounts):
            self.accounting = self.accounting.without(name)
        self.queue = self.accounting.remaining()
        self._finish_if_done()

    # -- the consumer goes and comes ---------------------------------------------------------

    @rule(data=st.data())
    @precondition(lambda self: self.state is not TrackingState.CHANGE_TRACKING)
    def consumer_is_lost(self, data: st.DataObject) -> None:
        """Of what was not acknowledged it may have nothing, or all."""
        if self.state is TrackingState.RESYNC and data.draw(st.booleans(), label="nothing came"):
            self.consumer = dict(self.acked_rows)
        was_in_sync = self.state is TrackingState.IN_SYNC
        self.state = self._moved(TrackingEvent.CONSUMER_LOST)
        self._outage(OutageStart.ANEW if was_in_sync else outage_start(self.meta))

    @rule()
    @precondition(lambda self: self.state is TrackingState.CHANGE_TRACKING)
    def log_cannot_be_written(self) -> None:
        """A full resync is flagged, and nothing is tracked until then."""
        self._outage(after_tracking_failed())

    def _outage(self, start: OutageStart) -> None:
        self.meta = start.meta
        kept = self.logs if start.keeps_logs else TrackingLogs()
        since = [each for each in self.changelog if each.position.hub_epoch > self.covers]
        self.logs = kept.with_entries(since) if start.tracks else kept
        self.accounting = None

    @rule(data=st.data())
    @precondition(lambda self: self.state is TrackingState.CHANGE_TRACKING)
    def compaction_is_cut_off(self, data: st.DataObject) -> None:
        """A round dies at one of its points."""
        found = full_round(self.logs)
        for step in found[: data.draw(st.integers(0, len(found)), label="steps")]:
            self.logs = after_step(self.logs, step)

    @rule()
    @precondition(lambda self: self.state is TrackingState.CHANGE_TRACKING)
    def resync_starts(self) -> None:
        """Compaction, marks, drops before creates; no page yet."""
        self.epoch += 1
        self.logs = compacted(self.logs)
        self.compact = {
            e.key: e.position for e in self.logs.compact or () if e.incarnation == self.number
        }
        found = incarnations_of(
            TableIncarnation("t", self.number), self.acked_number, is_full=self.is_copied
        )
        marking = mark(found, changed_rows(self.logs.compact or ()), {}, is_full=self.meta.is_full)
        self.tables = marking.incarnations
        self.is_copied = any(each.work is WorkKind.FULL_COPY for each in self.tables)
        for step in steps(self.tables, ["t"]):
            if step.action is TableAction.DROP:
                self.consumer = {}
        pieces = [
            Piece(each.table, each.number, each.work, len(self.compact))
            for each in self.tables
            if each.work is not None and each.at_hub is AtHub.PRESENT
        ]
        self.accounting = begin(self.meta.next_mode, 0, pieces)
        self.queue = self.accounting.remaining()
        self.meta = self.meta.marked()
        self.state = self._moved(TrackingEvent.RESYNC_STARTED)
        self._finish_if_done()

    def _moved(self, event: TrackingEvent) -> TrackingState:
        after = moved(self.state, event)
        assert after is not None
        return after

    # -- pages -------------------------------------------------------------------------------

    @rule()
    @precondition(lambda self: self.state is TrackingState.RESYNC)
    def hub_dies(self) -> None:
        """What was prepared is gone; what was committed stands."""
        assert self.accounting is not None
        self.queue = self.accounting.remaining()

    @rule(worker=st.sampled_from(("w1", "w2")))
    @precondition(lambda self: self.state is TrackingState.RESYNC)
    def page_is_sent(self, worker: str) -> None:
        """One page is read, published and counted in one hub epoch."""
        assert self.accounting is not None
        self.queue, pieces = self.queue.pick(worker, group_rows=10)
        for piece in pieces[:1]:
            assert is_valid(piece, next(t for t in self.tables if t.number == self.number))
            self.epoch += 1
            after = self.accounting.accounts[piece.name].piece.after
            send = self._tracked_page if piece.kind is WorkKind.PAGE else self._range
            count, last_key, is_last = send(after)
            self.accounting = self.accounting.page_sent(
                piece.name, count, last_key, is_last=is_last
            )
            if is_last:
                self.queue = self.queue.finished(worker, piece)
            else:
                self.queue = self.queue.given_back(worker)
        self._finish_if_done()

    def _tracked_page(self, after: str | None) -> tuple[int, str | None, bool]:
        keys = sorted(self.compact)
        page = next_page(keys, PAGE_ROWS, order, after)
        for key in page:
            match page_rule(self.compact[key], self.last.get(key)):
                case PageDecision.SEND | PageDecision.SEND_DELETE:
                    self._set(self.consumer, key, self.rows.get(key))
                case PageDecision.LEAVE_TO_LIVE:
                    pass
                case PageDecision.INCONSISTENT:
                    raise AssertionError(key)
        return len(page), page[-1] if page else None, not page or page[-1] == keys[-1]

    def _range(self, after: str | None) -> tuple[int, str | None, bool]:
        page = scanned_page("t", sorted(self.rows), order, after, PAGE_ROWS)
        for key in [one for one in self.consumer if page.range.holds(one, order)]:
            del self.consumer[key]
        self.consumer |= {key: self.rows[key] for key in page.keys}
        return len(page.keys), page.range.to, page.range.to is None

    def _finish_if_done(self) -> None:
        assert self.accounting is not None
        if self.accounting.is_finished:
            self._announce(self.covers, is_last_page=True)
            self.state = self._moved(TrackingEvent.RESYNC_FINISHED)
            self.meta = self.meta.finished()
            self.is_copied = False
            self._acknowledge()

    @invariant()
    def who_covers_a_hub_epoch_has_its_rows(self) -> None:
        """In sync the rows are the hub's; before that the consumer is told no more than it has."""
        if getattr(self, "state", None) is TrackingState.IN_SYNC:
            assert self.consumer == self.rows
            assert self.covers == self.epoch
        if hasattr(self, "accounting") and self.accounting is not None:
            assert self.accounting.sent_rows <= self.accounting.total_rows

    def teardown(self) -> None:
        """Whatever state it is in, a resync that is left alone ends in sync."""
        if not hasattr(self, "state"):
            return
        if self.state is TrackingState.CHANGE_TRACKING:
            self.resync_starts()
        while self.state is TrackingState.RESYNC:
            self.hub_dies()
            self.page_is_sent("w1")
        self.who_covers_a_hub_epoch_has_its_rows()


TestAwayAndBack = AwayAndBack.TestCase
TestAwayAndBack.settings = examples(60)
