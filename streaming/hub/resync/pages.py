"""The pages of resyncs: prepared beside the batches, sent by them.

A thread finds what a consumer lacks, marks its tables, and sorts their rows. A page is planned when
that is done; its batch looks at what was written since, so it holds rows as they stand there.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from checkpoints.reading.lookup import materialized
from checkpoints.reading.resync_rows import SortedRows
from streaming.core.batch.left_out import uncarried_rows
from streaming.core.model.change import RowKey
from streaming.core.model.row import Floor, RowState, with_image
from streaming.core.model.row_name import key_of
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import Table
from streaming.core.model.truncation import Truncation, Truncations
from streaming.core.records.arrival import Quarantined
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.topology import Subscription, Topology
from streaming.core.tracking.progress import Accounting, Piece
from streaming.core.tracking.ranges import KeyRange, key_order
from streaming.core.tracking.resync import (
    PageBound,
    PageRows,
    PlannedPage,
    Resync,
    ResyncPage,
    marked,
    planned_page,
    scanned,
)
from streaming.hub.resync.prepared_tables import OrderedKeys, PreparedTable
from streaming.stages.standing import RowsAt
from streaming.stages.tracked import of_table

Result = TypeVar("Result")


class LackingRows(NamedTuple):
    """What is asked: the rows that a consumer lacks in the hub epochs behind `after`, up to `to`.

    `ruv`: the changes that it has. `is_full`: its tables are copied anyway.
    """

    subscription: Subscription
    after: int
    to: int
    ruv: Ruv
    floors: tuple[Floor, ...]
    is_full: bool


class ResyncSource(Protocol):
    """Reads the state beside the batches; see `streaming/hub/resync/source.py`."""

    def start(self, work: Callable[[], Result]) -> "Future[Result]":
        """Start work on a thread."""

    def lacking(self, asked: LackingRows) -> pa.Table:
        """TRACKED_ROWS of what a consumer lacks."""

    def counts(self) -> Mapping[str, int]:
        """Table -> how many rows it has."""

    def touched(self, tables: Collection[str], after: int, to: int) -> Mapping[str, set[str]]:
        """Table -> the keys that the changelog touches in the hub epochs (after, to]."""

    def uncarried(self, consumer: int, topology: Topology) -> Collection[RowKey]:
        """The rows that are listed as uncarried at a consumer."""

    def sort(self, agreement: str, table: Table, tracked: pa.Table | None) -> SortedRows:
        """The rows of a table in order of keys; `tracked`: those of these keys."""


class Marks(NamedTuple):
    """The tables of a resync with their work, and what of them the consumer lacks (TRACKED_ROWS).

    `touched`: table -> the keys that were written since its rows were materialized. `uncarried`:
    the rows that are listed so there.
    """

    accounting: Accounting
    lacking: pa.Table
    touched: Mapping[str, set[str]]
    uncarried: Collection[RowKey]


@dataclass(slots=True)
class Preparation:
    """What is prepared of one resync; `epoch`: `rows` had everything up to there when it began.

    `touched`: table -> the keys that were written since, of every table that may be scanned;
    `uncarried`: table -> the keys that are, or were meanwhile, listed so at its consumer;
    `is_marked`: those from before the preparation are among both.
    """

    ident: tuple[object, ...]
    consumer: int
    epoch: int
    marks: "Future[Marks]"
    touched: dict[str, OrderedKeys]
    uncarried: dict[str, OrderedKeys]
    is_marked: bool = False
    sorting: "dict[str, Future[PreparedTable]]" = field(default_factory=dict)

    def is_ready(self, accounting: Accounting) -> bool:
        """Return whether the next open piece can be sent."""
        for one in accounting.accounts.values():
            if not one.is_closed:
                sorting = self.sorting.get(one.piece.table)
                return sorting is not None and sorting.done()
        return True


@dataclass(slots=True)
class Resyncs:
    """What is prepared of all resyncs, between two batches; used by the hub's one thread."""

    source: ResyncSource
    topology: Topology
    workers: int = 4
    work: dict[str, Preparation] = field(default_factory=dict)

    # -- between two batches ----------------------------------------------------------------

    def follow_settings(self, topology: Topology, workers: int) -> None:
        """Work with the tables and agreements of another configuration; nothing is prepared yet."""
        self.topology, self.workers = topology, workers

    def follow(self, state: HubState, rows_epoch: int) -> None:
        """Begin to prepare what became due, and forget what is over."""
        due = {n: a for n, a in state.agreements.items() if _is_under_way(a)}
        for name in [name for name in self.work if name not in due]:
            self._forget(name)
        for name, agreement in due.items():
            resync = agreement.resync
            if resync is None or resync.end is None:
                continue
            ident = (resync.end, resync.held.covers, resync.started_ms, agreement.consumer)
            known = self.work.get(name)
            if known is not None and known.ident != ident:
                self._forget(name)
                known = None
            if known is None:
                known = self._prepare(state, agreement, resync, ident, rows_epoch)
                self.work[name] = known
            self._sort_next(name, known, resync)

    def note(self, rows: Iterable[str]) -> None:
        """Note the rows that a batch has written, by their names in the window."""
        wanted = {table for one in self.work.values() for table in one.touched}
        if not wanted:
            return
        for name in rows:
            table, key = key_of(name)
            if table in wanted:
                for one in self.work.values():
                    if table in one.touched:
                        one.touched[table].add((key,))

    def note_uncarried(self, quarantined: Iterable[Quarantined]) -> None:
        """Note the rows that became uncarried in a batch."""
        if not self.work or not quarantined:
            return
        for rid, (table, key) in uncarried_rows(quarantined, self.topology.tables):
            for one in self.work.values():
                if one.consumer == rid and table in one.uncarried:
                    one.uncarried[table].add((key,))

    def due(self, state: HubState, at_ms: int) -> tuple[PlannedPage, ...]:
        """The pages that are prepared and that their consumers have room for.

        Packets have room for any number, for days pass before one is acknowledged.
        """
        found = list[PlannedPage]()
        for name, prepared in self.work.items():
            agreement = state.agreements[name]
            resync = agreement.resync
            if resync is None or not state.takes_page(agreement) or not prepared.marks.done():
                continue
            accounting = resync.accounting or prepared.marks.result().accounting
            every_ms = self.topology.subscriptions[name].packet_every_ms
            if agreement.feed is None or every_ms is None:
                has_room = len(resync.unacked) < self.topology.resync_pages
            else:
                has_room = agreement.feed.is_due(at_ms, every_ms)
            if has_room and prepared.is_ready(accounting):
                found.append(self._planned(name, prepared, accounting))
        return tuple(found)

    def close(self) -> None:
        """Remove what is prepared."""
        for name in [*self.work]:
            self._forget(name)

    # -- in a batch ---------------------------------------------------------------------------

    def resolved(self, page: PlannedPage, state: HubState) -> ResyncPage:
        """A planned page with its rows."""
        prepared, resync = self.work[page.agreement], state.agreements[page.agreement].resync
        marks = prepared.marks.result()
        accounting = (resync.accounting if resync else None) or marks.accounting
        parts, uncarried = [], set[RowKey]()
        for part in page.parts:
            kind = accounting.accounts[part.table].piece.kind
            base = self._base(page.agreement, part)
            rows = base.num_rows
            if kind.is_whole:
                rows += len(self._written(page.agreement, part))
                listed = prepared.uncarried[part.table].between(part.after, part.to)
                uncarried.update((part.table, key) for key in listed)
                parts.append(PageRows(part, kind, rows))
            else:
                keys = zip(base["key"].to_pylist(), base["tracked"].to_pylist(), strict=True)
                parts.append(PageRows(part, kind, rows, tuple(keys)))
        return ResyncPage(page.agreement, accounting, tuple(parts), frozenset(uncarried))

    def tracked_rows(self, pages: Iterable[ResyncPage], standing: RowsAt) -> dict[RowKey, RowState]:
        """The tracked rows of pages as they stand before the batch, with images."""
        found, other = dict[RowKey, RowState](), list[RowKey]()
        for page in pages:
            is_stale = standing.window.edge > self.work[page.agreement].epoch
            for part in (one.part for one in page.parts if one.tracked):
                sorted_rows = dict(_states(part.table, self._base(page.agreement, part)))
                held = standing.window.held(sorted_rows)
                for key, row in sorted_rows.items():
                    mine = held.get(key)
                    if mine is None:
                        found[key], is_another = row, is_stale
                    else:
                        found[key] = with_image(mine, row.image)
                        is_another = mine.csn is None or mine.csn != row.csn
                    other += [key] if is_another else []
        return found | standing.with_images(other)

    def range_rows(
        self,
        page: ResyncPage,
        now: Callable[[Collection[RowKey]], Mapping[RowKey, RowState]],
        truncations: Truncations,
    ) -> Iterator[tuple[KeyRange, pa.Table]]:
        """The ranges of a page, each with its rows (SORTED) in no order.

        `now`: rows as they stand behind what the batch judged, with images; `truncations`: those
        of the batch too.
        """
        for one in page.parts:
            if one.kind.is_whole:
                table = one.part.table
                base = _not_truncated(self._base(page.agreement, one.part), truncations.get(table))
                written = self._written(page.agreement, one.part)
                states = now([(table, key) for key in written])
                yield one.part, _overwritten(base, table, written, states)

    # -- preparing ----------------------------------------------------------------------------

    def _prepare(
        self,
        state: HubState,
        agreement: AgreementState,
        resync: Resync,
        ident: tuple[object, ...],
        rows_epoch: int,
    ) -> Preparation:
        served = self.topology.without(state.paused_tables)
        subscription = served.subscriptions[agreement.name]
        tables = subscription.tables
        floors = state.replicas[agreement.consumer].floors
        held, end = resync.held, resync.end or state.hub_epoch
        is_full = agreement.is_full
        scans = scanned(agreement.scans, state.truncations, held.covers)
        asked = LackingRows(subscription, held.covers, end, held.ruv, floors, is_full)
        committed, source, topology = state.hub_epoch, self.source, self.topology
        orders = {name: key_order(self.topology.tables[name]) for name in tables}

        def marks() -> Marks:
            lacking, counts = source.lacking(asked), source.counts()
            accounting = resync.accounting or marked(
                tables,
                Counter(lacking["table"].to_pylist()),
                counts,
                scans,
                is_full=agreement.is_full,
                started_ms=resync.started_ms,
            )
            touched = source.touched(tables, rows_epoch, committed)
            uncarried = source.uncarried(agreement.consumer, topology)
            return Marks(accounting, lacking, touched, uncarried)

        touched = {name: OrderedKeys(order) for name, order in orders.items()}
        uncarried = {name: OrderedKeys(order) for name, order in orders.items()}
        consumer, started = agreement.consumer, source.start(marks)
        return Preparation(ident, consumer, rows_epoch, started, touched, uncarried)

    def _sort_next(self, name: str, prepared: Preparation, resync: Resync) -> None:
        """Sort the tables that are sent next, and again those that go on elsewhere."""
        if not prepared.marks.done():
            return
        marks = prepared.marks.result()
        accounting = resync.accounting or marks.accounting
        _take_marks(prepared, marks, accounting)
        open_pieces = [one.piece for one in accounting.accounts.values() if not one.is_closed]
        for piece in open_pieces[: self.workers]:
            sorting = prepared.sorting.get(piece.table)
            if sorting is None or (sorting.done() and not sorting.result().goes_on(piece.after)):
                prepared.sorting[piece.table] = self._sorting(name, prepared, piece, marks)

    def _sorting(
        self, name: str, prepared: Preparation, piece: Piece, marks: Marks
    ) -> "Future[PreparedTable]":
        table, source = self.topology.tables[piece.table], self.source
        tracked = None if piece.kind.is_whole else of_table(marks.lacking, piece.table)
        touched = prepared.touched.get(piece.table) if piece.kind.is_whole else None

        def sort() -> PreparedTable:
            rows = source.sort(name, table, tracked)
            if piece.after is not None:
                rows.move_past(piece.after)
            rows.next_rows(self.topology.resync_page_rows + 1)
            return PreparedTable(rows, touched)

        return source.start(sort)

    def _planned(self, name: str, prepared: Preparation, accounting: Accounting) -> PlannedPage:
        """The next page; it ends before a table that is not sorted yet."""
        ready = dict(accounting.accounts)
        for key, one in accounting.accounts.items():
            sorting = prepared.sorting.get(one.piece.table)
            if not one.is_closed and (sorting is None or not sorting.done()):
                del ready[key]
        ready_accounts = Accounting(accounting.mode, accounting.started_s, ready)

        def bound(piece: Piece, room: int) -> PageBound:
            return self._table(name, piece.table).bound(room)

        return planned_page(name, ready_accounts, bound, self.topology.resync_page_rows)

    def _table(self, agreement: str, table: str) -> PreparedTable:
        return self.work[agreement].sorting[table].result()

    def _base(self, agreement: str, part: KeyRange) -> pa.Table:
        prepared = self._table(agreement, part.table)
        return prepared.base(part.to, prepared.rows.order)

    def _written(self, agreement: str, part: KeyRange) -> list[str]:
        touched = self._table(agreement, part.table).touched
        return touched.between(part.after, part.to) if touched else []

    def _forget(self, name: str) -> None:
        for sorting in self.work.pop(name).sorting.values():
            sorting.add_done_callback(_remove)


def _take_marks(prepared: Preparation, marks: Marks, accounting: Accounting) -> None:
    """Note what was written before the preparation, of the tables that are scanned.

    And what was uncarried then, of all.
    """
    if prepared.is_marked:
        return
    kinds = {one.piece.table: one.piece.kind for one in accounting.accounts.values()}
    scanned = {table for table, kind in kinds.items() if kind.is_whole}
    for table in prepared.touched.keys() - scanned:
        del prepared.touched[table]
    for table, touched in prepared.touched.items():
        touched.add(marks.touched.get(table, ()))
    for table, key in marks.uncarried:
        if table in prepared.uncarried:
            prepared.uncarried[table].add((key,))
    prepared.is_marked = True


def _remove(sorting: "Future[PreparedTable]") -> None:
    if not sorting.cancelled() and sorting.exception() is None:
        sorting.result().rows.remove()


def _is_under_way(agreement: AgreementState) -> bool:
    resync = agreement.resync
    return agreement.goes_on_with_resync and resync is not None and not resync.last_page


def _states(table: str, rows: pa.Table) -> Iterator[tuple[RowKey, RowState]]:
    """Rows of SORTED as values."""
    for row in rows.to_pylist():
        yield (table, row["key"]), materialized(row)


def _not_truncated(rows: pa.Table, truncation: Truncation | None) -> pa.Table:
    """Sorted rows without those that a truncate took since they were sorted."""
    if truncation is None:
        return rows
    return rows.filter(pc.greater_equal(rows["hub_epoch"], truncation.hub_epoch))


def _overwritten(
    base: pa.Table, table: str, written: Collection[str], states: Mapping[RowKey, RowState]
) -> pa.Table:
    """Sorted rows, those that were written since as they stand now."""
    if not written:
        return base
    kept = base.filter(pc.invert(pc.is_in(base["key"], pa.array(list(written), pa.string()))))
    now = [
        {
            "key": key,
            "author": row.author,
            "hub_epoch": row.hub_epoch,
            "csn": row.csn,
            "image": row.image,
        }
        for key in written
        if (row := states.get((table, key))) is not None and row.image is not None
    ]
    return pa.concat_tables([kept, pa.Table.from_pylist(now, schema=base.schema)])
