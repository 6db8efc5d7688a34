"""The hub in memory: topics as lists, tables as dictionaries, `decide` over micro-batches."""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from checkpoints.commit.faults import FaultPoint
from checkpoints.reading.new_starts import TakenHello, last_starts
from checkpoints.reading.sent_ranges import SentRanges
from connectors import wire
from connectors.packets.header import Content, Got, UpdatesHeader
from streaming.core.batch.exporting import packets_of
from streaming.core.batch.sending import (
    EpochMark,
    LogEntry,
    RangeRefresh,
    Refresh,
    SendingView,
    stop_answers,
    wants_batch,
    wants_due_batch,
)
from streaming.core.conflict.judge import Judged, Verdict
from streaming.core.delivery.due import due_limit
from streaming.core.delivery.lack import lack
from streaming.core.intake.input_lost import InputLoss
from streaming.core.intake.liveness import unheard
from streaming.core.intake.refused_rows import due
from streaming.core.intake.waiting_columns import WaitingChange, going_on
from streaming.core.matrix.packets import PacketFeed
from streaming.core.matrix.packets import Place as FeedPlace
from streaming.core.model.change import HUB_RID, Change, Op, RowKey
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.command import (
    ReadmitOrder,
    ResyncOrder,
    RowOrder,
    TablesOrder,
    UndoOrder,
    app_of,
)
from streaming.core.model.csn import Generator, rid_of
from streaming.core.model.row import Arrived, RowState
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.model.statuses import AwayReason
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.records.arrival import COMPARED, AbortTransaction, ControlOutcome, Quarantined
from streaming.core.records.check import CheckedRecord, Limits, check
from streaming.core.records.record import (
    Commit,
    Hello,
    Item,
    RangeItem,
    Reason,
    ReceivedRecord,
    Record,
    Stopped,
    Update,
)
from streaming.core.retention.hold import purge_limit, reflected_by_all
from streaming.core.retention.purge import ListPlace, Purge, purge_of, purged_lists, spared
from streaming.core.state.agreement_state import AgreementState, SendRange
from streaming.core.state.hub_state import HubState
from streaming.core.state.membership import LastTopology, adopted
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.restored import SentPosition, is_restored, raised
from streaming.core.state.topology import Topology
from streaming.core.tracking.progress import Accounting, Piece, WorkKind
from streaming.core.tracking.ranges import KeyOrder, KeyRange, key_order
from streaming.core.tracking.resync import (
    PageBound,
    PageRows,
    PlannedPage,
    ResyncPage,
    marked,
    planned_page,
    scanned,
)
from streaming.facts.consumers.lag import acked
from streaming.facts.consumers.resync import lacks_rows
from tests.model.backend import Conflict, Judgement, Kept, RuvComparison, without_values
from tests.model.post import Packet
from tests.model.undone import undone_rows
from tests.reference.batch import BatchDecision, decide
from tests.reference.columns import with_columns
from tests.reference.pages import bound_of
from tests.reference.sending import is_for, items_of, last_of_rows, row_of, tracked

CHUNK_ITEMS = 2
"""Small, so that batches of several chunks are the rule."""

BEFORE_THE_COMMIT = (
    FaultPoint.AFTER_CHANGELOG,
    FaultPoint.AFTER_CONFLICTS,
    FaultPoint.AFTER_QUARANTINE,
    FaultPoint.AFTER_PENDING,
    FaultPoint.AFTER_EVENTS,
    FaultPoint.AFTER_DELAYS,
    FaultPoint.BEFORE_COMMIT,
)
"""The step that writes the tables, uncommitted; only the changelog is modelled."""


_STATE = (
    "state",
    "plan",
    "taken",
    "log",
    "epochs",
    "marks",
    "table",
    "kept",
    "kept_in",
    "hellos",
    "dropped",
    "repeats",
)
"""The attributes of a hub that are in its state, and so in a backup of it."""


Place = tuple[int, int]
"""The rid and offset of a record."""

Release = tuple[int, int, int]
"""The same of a record that is released, and the hub epoch that the operator looked at."""

Preferred = tuple[int, RowKey, str | None, str | None, int]
"""The rid whose row is right, the row, its image at the hub and there, the hub epoch of that."""


_NEVER = (0, 0)

UNDONE = app_of("undo", "operator")
"""By what the hub's changes name themselves that undo others."""


class HubKilledError(Exception):
    """The hub dies here."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a batch will do, durable before it does any of it: how far to read, and its clock.

    `aborts`: the CSNs by which an operator names the transactions that it ends. `retries`: the
    refused rows that it sends again.
    `recovers`: the rids of the replicas whose lost input he gives up. `retires`: of those that he
    takes out for good; `readmits`: the rids that new ones have. `resumes`: the agreements that he
    resumes. `losses`: those of which input is lost. `resyncs`: the agreements that he brings what
    they lack; `pauses`: those that he pauses; `rows_set`: the rows of the matrix that he sets.
    `pages`: of resyncs. `undelivered`: the agreements whose topics refused the last batch.
    `writable`: those whose topics had, and may be written again.
    `send_nows`: the agreements of which he lets go what their delay holds back.
    `of_tables`: the tables that he pauses, or resumes.
    `drops`: the records in quarantine that he drops; `releases`: those that he releases, which are
    checked by `writes`: see `PureHub`. `repairs`: the rows that he has sent again, by rid;
    `preferred`: those of replicas that become changes of the hub. `purge`: what it purges.
    `undos`: what he undoes, and the hub epoch that he looked at.
    """

    ends: Mapping[int, int]
    clock_ms: int
    aborts: tuple[str, ...] = ()
    retries: tuple[str, ...] = ()
    recovers: tuple[int, ...] = ()
    retires: tuple[int, ...] = ()
    readmits: tuple[ReadmitOrder, ...] = ()
    resumes: tuple[str, ...] = ()
    losses: tuple[InputLoss, ...] = ()
    resyncs: tuple[ResyncOrder, ...] = ()
    pauses: tuple[str, ...] = ()
    pages: tuple[PlannedPage, ...] = ()
    undelivered: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    drops: tuple[Place, ...] = ()
    releases: tuple[Release, ...] = ()
    repairs: tuple[tuple[int, RowKey], ...] = ()
    preferred: tuple[Preferred, ...] = ()
    writes: Mapping[int, frozenset[str]] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    rows_set: tuple[RowOrder, ...] = ()
    purge: Purge | None = None
    send_nows: tuple[str, ...] = ()
    undos: tuple[tuple[UndoOrder, int], ...] = ()
    of_tables: tuple[tuple[bool, TablesOrder], ...] = ()


@dataclass(frozen=True, slots=True)
class DecidedBatch:
    """A committed batch: the state before it, its plan, and what was decided."""

    before: HubState
    plan: Plan
    decision: BatchDecision


@dataclass(slots=True)
class PureHub:
    """The order of a batch (docs/protocol.md) around the pure core; all but `writable` is durable.

    `log`: per batch its entries, which count once the batch is committed. `decided`: the committed
    batches. `kept_in`: by record in quarantine, its batch; `hellos`: those that were
    taken; `dropped`: what an operator dropped or released. `repeats`:
    duplicates.
    `requested_aborts`, `requested_retries`, `requested_recovers`, `requested_retires`,
    `requested_readmits`,
    `requested_resumes`, `requested_resyncs`, `requested_pauses`, `requested_rows`,
    `requested_drops`, `requested_releases`, `requested_repairs`, `requested_preferred`,
    `requested_send_nows`, `requested_undos`, `requested_tables`: the
    arguments of commands that no batch has processed. `firsts`: rid -> the offset of the first
    record that its topic still has. `refusing`: the consumers whose topics refuse what they are
    sent. `writes`: rid -> the tables that this replica may write, if not all. `unknown`: the tables
    of which its configuration lacks the column of values.
    `writable`: the agreements away because of that whose topics it found to take it again.
    `purges`: its next batch purges what nobody needs.
    `packets`: rid -> what was written for it; `places`: rid -> those of the records of its topic.
    """

    topology: Topology
    state: HubState = field(init=False)
    topics: dict[int, list[ReceivedRecord]] = field(default_factory=lambda: defaultdict(list))
    arrivals: list[ReceivedRecord] = field(default_factory=list)
    sent: dict[int, list[Update | Stopped]] = field(default_factory=lambda: defaultdict(list))
    plan: Plan | None = None
    taken: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    log: dict[int, tuple[LogEntry, ...]] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    marks: list[EpochMark] = field(default_factory=list)
    table: dict[RowKey, RowState] = field(default_factory=dict)
    decided: list[DecidedBatch] = field(default_factory=list)
    kept: list[Quarantined] = field(default_factory=list)
    kept_in: list[int] = field(default_factory=list)
    hellos: list[TakenHello] = field(default_factory=list)
    dropped: set[Place] = field(default_factory=set)
    repeats: int = 0
    requested_aborts: list[str] = field(default_factory=list)
    requested_retries: list[str] = field(default_factory=list)
    requested_recovers: list[int] = field(default_factory=list)
    requested_retires: list[int] = field(default_factory=list)
    requested_readmits: list[ReadmitOrder] = field(default_factory=list)
    requested_resumes: list[str] = field(default_factory=list)
    requested_resyncs: list[ResyncOrder] = field(default_factory=list)
    requested_pauses: list[str] = field(default_factory=list)
    packets: dict[int, list[Packet]] = field(default_factory=lambda: defaultdict(list))
    places: dict[int, list[FeedPlace]] = field(default_factory=lambda: defaultdict(list))
    requested_rows: list[RowOrder] = field(default_factory=list)
    requested_send_nows: list[str] = field(default_factory=list)
    requested_tables: list[tuple[bool, TablesOrder]] = field(default_factory=list)
    requested_drops: list[Place] = field(default_factory=list)
    requested_releases: list[Release] = field(default_factory=list)
    requested_repairs: list[tuple[int, RowKey]] = field(default_factory=list)
    requested_preferred: list[Preferred] = field(default_factory=list)
    requested_undos: list[tuple[UndoOrder, int]] = field(default_factory=list)
    firsts: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    refusing: set[int] = field(default_factory=set)
    writes: dict[int, frozenset[str]] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    undelivered: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    purges: bool = False
    kill: FaultPoint | None = None
    up: bool = True
    backup: dict[str, Any] = field(default_factory=dict)
    is_standing: bool = False

    def __post_init__(self) -> None:
        """Start with no batch at all, and every agreement waiting for its consumer's hello."""
        subscriptions = self.topology.subscriptions.values()
        self.state = HubState(
            1,
            "model",
            ruvs={dataset: Ruv("model") for dataset in self.topology.datasets},
            replicas={s.consumer: ReplicaState(s.consumer) for s in subscriptions},
            agreements={
                s.name: AgreementState(
                    s.name, s.consumer, feed=PacketFeed() if s.is_by_packets else None
                )
                for s in subscriptions
            },
        )

    # -- topics -----------------------------------------------------------------------------

    def send(
        self,
        rid: int,
        session: str | None,
        record: Record,
        time_ms: int,
        place: FeedPlace | None = None,
    ) -> None:
        """Append a record to a replica's topic; `place`: the one of its outbox, by a packet."""
        if place is not None:
            self.places[rid].append(place)
        found = self._check(rid, session, record, self.writes, self.unknown)
        is_uncarried = found.reason is not None and found.reason.is_uncarried
        received = ReceivedRecord(rid, len(self.topics[rid]), time_ms, session, record)
        known = self.topology.columns.get(rid, {})
        if isinstance(record, Change) and record.table in known:
            short = with_columns(record, known[record.table])
            received = replace(received, record=short, content=found.content)
        if is_uncarried:
            received = replace(
                received, reason=found.reason, detail=found.detail or "", content=found.content
            )
        self.topics[rid].append(received)
        self.arrivals.append(received)

    def _check(
        self,
        rid: int,
        session: str | None,
        record: Record,
        writes: Mapping[int, frozenset[str]],
        unknown: Collection[str],
    ) -> CheckedRecord:
        value, tables = wire.encode(session or "", record), without_values(self.topology, unknown)
        return check(value, rid, tables, Limits(writes=writes, columns=self.topology.columns))

    def agreement_read_by(self, rid: int) -> str:
        """The agreement whose updates this replica reads."""
        return self.topology.agreement_of(rid) or ""

    def updates(self, rid: int) -> Sequence[Update | Stopped]:
        """Every record of the updates topic of this consumer's agreement, from the first."""
        return self.sent[rid]

    def packets_to(self, rid: int) -> Sequence[Packet]:
        """Every packet that was written for this consumer, from the first."""
        return self.packets[rid]

    # -- batches ----------------------------------------------------------------------------

    def take(
        self,
        counts: Mapping[int, int] | None,
        now_ms: int,
        kill: FaultPoint | None,
        pages: Collection[int] = (),
    ) -> None:
        """Process one micro-batch; without input and without anything to send it is none."""
        self.kill = kill
        if self.is_standing:
            return
        ends = {rid: len(topic) for rid, topic in self.topics.items()}
        if counts is not None:
            ends = {r: min(end, self.taken[r] + counts.get(r, 0)) for r, end in ends.items()}
        has_input = any(end > self.taken[rid] for rid, end in ends.items())
        has_command = (
            self._has_orders()
            or self.requested_drops
            or self.requested_releases
            or self.undelivered
            or self.writable
            or self.purges
        )
        losses, due_pages = self.losses(ends), self._pages(pages)
        if has_input or has_command or losses or due_pages or self.wants_batch(now_ms):
            aborts, self.requested_aborts = tuple(self.requested_aborts), []
            retries, self.requested_retries = tuple(self.requested_retries), []
            recovers, self.requested_recovers = tuple(self.requested_recovers), []
            retires, self.requested_retires = tuple(self.requested_retires), []
            readmits, self.requested_readmits = tuple(self.requested_readmits), []
            resumes, self.requested_resumes = tuple(self.requested_resumes), []
            resyncs, self.requested_resyncs = tuple(self.requested_resyncs), []
            pauses, self.requested_pauses = tuple(self.requested_pauses), []
            rows, self.requested_rows = tuple(self.requested_rows), []
            drops, self.requested_drops = tuple(self.requested_drops), []
            releases, self.requested_releases = tuple(self.requested_releases), []
            repairs, self.requested_repairs = tuple(self.requested_repairs), []
            preferred, self.requested_preferred = tuple(self.requested_preferred), []
            commands = aborts, retries, recovers, retires, readmits, resumes
            orders = losses, resyncs, pauses, due_pages
            topics, self.writable = (self.undelivered, self.writable), ()
            plan = Plan(ends, now_ms, *commands, *orders, *topics)
            plan = replace(plan, drops=drops, releases=releases, rows_set=rows)
            plan = replace(plan, repairs=repairs, preferred=preferred, purge=self._purge(now_ms))
            send_nows, self.requested_send_nows = tuple(self.requested_send_nows), []
            undos, self.requested_undos = tuple(self.requested_undos), []
            of_tables, self.requested_tables = tuple(self.requested_tables), []
            plan = replace(plan, send_nows=send_nows, undos=undos, of_tables=of_tables)
            self.run(replace(plan, writes=dict(self.writes), unknown=self.unknown))

    def take_beside(self, now_ms: int, pages: Collection[int]) -> None:
        """No other hub reads its topics."""

    def purge(self) -> None:
        """Have its next batch purge all that nobody needs, however new it is."""
        self.purges = True

    def _purge(self, now_ms: int) -> Purge | None:
        """What is purged if that was asked for; see checkpoints/reading/purgeable.py."""
        asked, self.purges = self.purges, False
        epoch = purge_limit(self.state, now_ms, self.topology.max_away_ms)
        at = next((one.ruvs for one in reversed(self.marks) if one.hub_epoch <= epoch), None)
        if not asked or at is None or epoch <= self.state.purge_epoch:
            return None
        lists = purged_lists(self.state, at)
        below, above = dict[ListPlace, str](), dict[ListPlace, str]()
        for hub_epoch, entry in self.by_epoch():
            if isinstance(entry, Judged):
                change = entry.arrived.change
                place = self.topology.dataset_of(change.table), change.rid
                one = lists.get(place)
                if one is not None and hub_epoch <= epoch and change.csn < one.edge:
                    below[place] = max(change.csn, below.get(place, ""))
                elif one is not None and hub_epoch > epoch:
                    above[place] = min(change.csn, above.get(place, change.csn))
        return purge_of(self.state, epoch, self.state.batch, lists, below, above)

    def _pages(self, rids: Collection[int]) -> tuple[PlannedPage, ...]:
        """The next pages of the resyncs of these consumers that have one."""
        due = (a for a in self.state.agreements.values() if a.consumer in rids)
        return tuple(self._page(a) for a in due if self.state.takes_page(a))

    def _page(self, agreement: AgreementState) -> PlannedPage:
        order, rows = self._orders(), self.topology.resync_page_rows
        lacking = self._tracked(agreement)

        def bound(piece: Piece, room: int) -> PageBound:
            names = [k for table, k in self._rows_of(piece.kind, lacking) if table == piece.table]
            by = order[piece.table]
            behind = [k for k in names if KeyRange(piece.table, piece.after).holds(k, by)]
            return bound_of(sorted(behind, key=by), room, by)

        return planned_page(agreement.name, self._accounting(agreement, lacking), bound, rows)

    def _rows_of(self, kind: WorkKind, lacking: Mapping[RowKey, int]) -> Iterable[RowKey]:
        return [k for k, row in self.table.items() if row.exists] if kind.is_whole else lacking

    def _orders(self) -> dict[str, KeyOrder]:
        return {name: key_order(table) for name, table in self.topology.tables.items()}

    def _tracked(self, agreement: AgreementState) -> dict[RowKey, int]:
        """The rows that this consumer lacks up to the end of its resync."""
        resync = agreement.resync
        assert resync is not None
        assert resync.end is not None
        subscription = self.sending.subscriptions[agreement.name]
        tables, filters = subscription.tables, subscription.rows
        floors = self.state.replicas[agreement.consumer].floors
        held, end = resync.held, resync.end
        entries = [(h, e) for h, e in self.by_epoch() if held.covers < h <= end]
        deletes = subscription.sends_deletes
        rid = agreement.consumer
        return tracked(entries, rid, tables, held.ruv, floors, filters, deletes=deletes)

    def _accounting(self, agreement: AgreementState, lacking: Mapping[RowKey, int]) -> Accounting:
        """The accounting before the next page; the first page marks the tables."""
        resync = agreement.resync
        if resync is not None and resync.accounting is not None:
            return resync.accounting
        held_covers = resync.held.covers if resync else 0
        return marked(
            self.sending.subscriptions[agreement.name].tables,
            Counter(table for table, _ in lacking),
            Counter(table for (table, _), row in self.table.items() if row.exists),
            scanned(agreement.scans, self.state.truncations, held_covers),
            is_full=agreement.is_full,
            started_ms=resync.started_ms if resync else 0,
        )

    def _resolved(self, page: PlannedPage) -> ResyncPage:
        """A planned page with its rows."""
        agreement, order = self.state.agreements[page.agreement], self._orders()
        lacking = self._tracked(agreement)
        accounting, parts = self._accounting(agreement, lacking), list[PageRows]()
        for part in page.parts:
            kind = accounting.accounts[part.table].piece.kind
            of_table = [(k, h) for (table, k), h in lacking.items() if table == part.table]
            keys = [key for table, key in self._rows_of(kind, lacking) if table == part.table]
            held = [key for key in keys if KeyRange(*part).holds(key, order[part.table])]
            rows = sorted(
                (kh for kh in of_table if kh[0] in held), key=lambda kh: order[part.table](kh[0])
            )
            parts.append(PageRows(part, kind, len(held), () if kind.is_whole else tuple(rows)))
        uncarried = frozenset(
            row
            for one, row in self._left()
            if one.rid == agreement.consumer and row[1]  # a truncate has no key
            for part in page.parts
            if part.table == row[0] and KeyRange(*part).holds(row[1], order[row[0]])
        )
        return ResyncPage(page.agreement, accounting, tuple(parts), uncarried)

    def losses(self, rids: Iterable[int]) -> tuple[InputLoss, ...]:
        """Of these replicas, those whose topics begin above what was taken."""
        lost = {rid: self.firsts[rid] for rid in rids if self.firsts[rid] > self.taken[rid]}
        return tuple(InputLoss(rid, "records are gone", first) for rid, first in lost.items())

    def lose_unread(self, rid: int) -> None:
        """Delete what the committed batches have not taken of this replica's topic."""
        self.firsts[rid] = len(self.topics[rid])

    def recover(self, rid: int) -> None:
        """Append an operator's command to give up the lost input of this replica."""
        self.requested_recovers.append(rid)

    def retire(self, rid: int) -> None:
        """Append an operator's command to take this replica out for good."""
        self.requested_retires.append(rid)

    def readmit(self, rid: int) -> None:
        """Append an operator's command to let a new replica have the rid of this one."""
        self.requested_readmits.append(ReadmitOrder(rid, len(self.topics[rid])))

    def resync(self, rid: int, *, is_full: bool) -> None:
        """Append an operator's command to bring this consumer what it lacks."""
        self.requested_resyncs.append(ResyncOrder(self.topology.agreement_of(rid) or "", is_full))

    def pause(self, rid: int) -> None:
        """Append an operator's command to send this consumer nothing more."""
        self.requested_pauses.append(self.topology.agreement_of(rid) or "")

    @property
    def sending(self) -> Topology:
        """What the agreements send, without the tables that are paused."""
        return self.topology.without(self.state.paused_tables)

    def pause_table(self, rid: int, table: str, *, is_paused: bool) -> None:
        """Append an operator's command to send nothing of a table, or to send it again."""
        order = TablesOrder(self.topology.agreement_of(rid) or "", frozenset({table}))
        self.requested_tables.append((is_paused, order))

    def paused_tables(self) -> Mapping[str, Collection[str]]:
        """Agreement -> the tables of which it sends nothing, or is to."""
        asked = {(o.agreement, t) for is_paused, o in self.requested_tables for t in o.tables}
        known = {(name, t) for name, tables in self.state.paused_tables.items() for t in tables}
        return {n: {t for name, t in asked | known if name == n} for n, _ in asked | known}

    def send_now(self, rid: int) -> None:
        """Append an operator's command to let go what the delay of a consumer holds back."""
        self.requested_send_nows.append(self.topology.agreement_of(rid) or "")

    def holds_back(self) -> bool:
        """Return whether something is not sent yet because of when its agreement sends."""
        known = self.state.agreements
        return any(known[name].is_sent_to for name in self.state.held_back)

    def lower_row(self, rid: int, epochs: int) -> None:
        """Append an operator's command to set the row of this consumer in the matrix back."""
        one = self.agreement_with(rid)
        hub_epoch = max(one.acked_covers, one.estimated - epochs)
        dataset = self.topology.dataset_at(rid)
        ruvs = {mark.hub_epoch: mark.ruvs for mark in self.marks}.get(hub_epoch, {})
        ruv = ruvs.get(dataset, NOTHING_KNOWN)
        self.requested_rows.append(RowOrder(one.name, hub_epoch, tuple(ruv.text())))

    def refuse_sent(self, rid: int, *, is_refused: bool) -> None:
        """Have the topic of this consumer's agreement refuse what it is sent, or take it again."""
        self.refusing = self.refusing | {rid} if is_refused else self.refusing - {rid}

    def find_writable(self, rid: int) -> None:
        """Have it look at the topic of this consumer's agreement, which may be written again."""
        agreement = self.agreement_with(rid)
        if agreement.is_unwritable:
            self.writable = (*self.writable, agreement.name)

    def may_write(self, rid: int, table: str, *, is_allowed: bool) -> None:
        """Start again with a configuration by which this replica may write a table, or not."""
        before, one = self.writes.get(rid, frozenset(self.topology.tables)), {table}
        self.writes[rid] = before | one if is_allowed else before - one
        self.restart(0)

    def know_column(self, table: str, *, is_known: bool) -> None:
        """Start again with a configuration that has the column of values of a table, or not."""
        is_back = is_known and table in self.unknown
        self.unknown = self.unknown - {table} if is_known else self.unknown | {table}
        back = {table: ColumnFilter(frozenset(self.topology.tables[table].key))} if is_back else {}
        self._adopt(self.topology, back)

    def go_on(self) -> None:
        """Order the release of what waits for a column and may go on, as it does by itself."""
        found = [
            (number, one, one.change)
            for number, one in zip(self.kept_in, self.kept, strict=True)
            if one.reason is Reason.COLUMN and (one.rid, one.offset) not in self.dropped
        ]
        waiting = [
            WaitingChange(
                change.csn,
                one.rid,
                number,
                one.offset,
                (change.prim_csn or change.csn, one.rid),
                change.row,
                one.mre or 0,
                self._check(one.rid, "-", change, self.writes, self.unknown).reason is None,
                self._is_overwritten(number, one, change),
                self._is_contended(one, change),
            )
            for number, one, change in found
            if change is not None and change.op is not Op.TRUNCATE
        ]
        committed = {
            (one.record.prim_csn, rid)
            for rid, topic in self.topics.items()
            for one in topic[: self.taken[rid]]
            if isinstance(one.record, Commit)
        }
        committed |= {one.context for one in waiting if one.context[0] == one.id}
        for going in going_on(waiting, committed, len(waiting)):
            self.requested_releases.append((going.rid, going.offset, going.mre))

    def _is_overwritten(self, number: int, kept: Quarantined, change: Change) -> bool:
        """Return whether its replica has written the row anew, or was sent it."""
        since = [e for n in sorted(self.epochs) if n >= number for e in self.log[n]]
        mine = (e for e in since if not isinstance(e, Judged) or _is_of(e, kept.rid))
        return any(_sets_right(e, kept, change.row, lambda *_: False) for e in mine)

    def _is_contended(self, kept: Quarantined, change: Change) -> bool:
        """Return whether somebody else wrote the row, and its replica had not seen that."""
        return any(
            judged.after.csn == judged.arrived.change.csn
            and hub_epoch > (kept.mre or 0)
            and not _is_of(judged, kept.rid)
            and judged.arrived.change.row == change.row
            for hub_epoch, judged in self._judged()
        )

    def reconfigure(self, topology: Topology) -> None:
        """Start again with a configuration by which agreements send something else."""
        self._adopt(topology, {})

    def _adopt(self, topology: Topology, back: Mapping[str, ColumnFilter]) -> None:
        """Start again; `back`: the tables of which a column comes back, as they were without it."""
        self.restart(0)
        rids, known = list(self.state.replicas), self.topology.subscriptions.items()
        before = {name: replace(one, configured=back) for name, one in known}
        changed = LastTopology(replace(self.topology, subscriptions=before), 0)
        self.topology = topology
        self.state = adopted(self.state, self.topology, rids, before=changed)

    def mark_away(self, rid: int) -> None:
        """Mark a consumer as away, as when it has acknowledged nothing in time."""
        name = self.topology.agreement_of(rid) or ""
        away = self.state.agreements[name].away(AwayReason.SILENT, 0)
        self.state = replace(self.state, agreements={**self.state.agreements, name: away})

    def resume(self, rid: int) -> None:
        """Append an operator's command to resume the agreement of this consumer."""
        self.requested_resumes.append(self.topology.agreement_of(rid) or "")

    def abort(self, csn: str) -> None:
        """Append an operator's command to abort a transaction."""
        self.requested_aborts.append(csn)

    def retry(self, rid: int) -> None:
        """Append an operator's command to send all refused rows of this replica again."""
        self.requested_retries.append(f"r{rid}")

    def wants_batch(self, now_ms: int) -> bool:
        """Return whether there is something to send without input."""
        if due(self.state.refusals, self.sending, now_ms, self.state.lacking):
            return True
        if any(one.begins_resync for one in self.state.agreements.values()):
            return True
        interval_ms, hub_epoch = self.topology.covers_interval_ms, self.state.hub_epoch
        return any(
            self._wants_to_send(agreement, hub_epoch, now_ms, interval_ms)
            if agreement.feed is None
            else self._wants_export(agreement, now_ms)
            for agreement in self.state.agreements.values()
        )

    def _wants_to_send(
        self, agreement: AgreementState, hub_epoch: int, now_ms: int, interval_ms: int
    ) -> bool:
        """Return whether there is something to send to its topic."""
        name = agreement.name
        held, times = self.state.held_back.get(name), self.topology.times(name)
        limit = due_limit(agreement, times, held, now_ms)
        if limit is not None:
            return wants_due_batch(agreement, hub_epoch, now_ms, interval_ms, limit, held)
        return wants_batch(agreement, hub_epoch, now_ms, interval_ms, nudged=False)

    def _wants_export(self, agreement: AgreementState, now_ms: int) -> bool:
        subscription = self.topology.subscriptions[agreement.name]
        places = self._places({rid: len(topic) for rid, topic in self.topics.items()})
        packets = packets_of(agreement, subscription, self.state.replicas, places)
        return packets is not None and packets.wants_export(agreement, self.state.hub_epoch, now_ms)

    def _places(self, ends: Mapping[int, int]) -> dict[str, FeedPlace]:
        """Agreement -> the place of the last record of its consumer before these ends."""
        fed = [one for one in self.topology.subscriptions.values() if one.is_by_packets]
        return {
            one.name: self.places[one.consumer][end - 1]
            for one in fed
            if (end := ends.get(one.consumer, 0))
        }

    def restart(self, now_ms: int) -> None:
        """Finish the plan that was left; without one, publish the last batch again."""
        del now_ms
        self.kill, self.up, self.writable = None, True, ()
        self.state = self.state.without_ranges()
        if self.plan is None:
            self._publish()
            return
        if self.plan.pages:  # what a dead hub wrote of them is dropped: they are read anew
            self.log.pop(self.state.batch + 1, None)
        self.run(replace(self.plan, pages=()))

    def back_up(self) -> None:
        """Copy what is durable and not in topics."""
        self.backup = deepcopy({name: getattr(self, name) for name in _STATE})

    def put_back(self, now_ms: int) -> None:
        """Put the copy back; the topics stay as they are."""
        for name, value in deepcopy(self.backup).items():
            setattr(self, name, value)
        self.is_standing = is_restored(self.state, self._sent_positions())
        if not self.is_standing:
            self.restart(now_ms)

    def stands_still(self) -> bool:
        """Return whether it does not go on from its state, which was put back."""
        return self.is_standing

    def recover_hub(self, now_ms: int) -> None:
        """Go on as the next generation; a plan that was left is dropped."""
        del now_ms
        self.log.pop(self.state.batch + 1, None)
        self.state = raised(self.state.without_ranges(), self._sent_positions())
        self.plan, self.up, self.is_standing = None, True, False

    def _sent_positions(self) -> list[SentPosition]:
        by_packets = (p.records for there in self.packets.values() for p in there)
        topics = chain(self.sent.values(), by_packets)
        sent = (one for topic in topics for one in topic if isinstance(one, Update))
        return [SentPosition(one.generation, one.hub_epoch) for one in sent]

    def is_up(self) -> bool:
        """Return whether it was not killed since it started."""
        return self.up

    def run(self, plan: Plan) -> None:
        """Run a batch, to its end or to the point where the hub is killed."""
        try:
            self._batch(plan)
        except HubKilledError:
            self.up = False

    def _at(self, point: FaultPoint) -> None:
        if point is self.kill:
            raise HubKilledError

    def _batch(self, plan: Plan) -> None:
        """One batch: 0 plan · 1 read and decide · 2 tables · 3 commit · 4 publish."""
        self.plan = plan
        self._at(FaultPoint.AFTER_PLAN)
        plan = self._without_lost(plan)
        lost = {loss.rid for loss in plan.losses}
        received = [
            record
            for rid, end in sorted(plan.ends.items())
            if rid not in lost
            for record in self.topics[rid][self.taken[rid] : end]
        ]
        decision = self.decision_of(received, plan)
        self._at(FaultPoint.AFTER_READ)
        number = decision.state.batch
        if self.log.setdefault(number, decision.entries) != decision.entries:
            raise AssertionError(f"batch {number} was decided in two ways from one plan")
        for point in BEFORE_THE_COMMIT:
            self._at(point)
        before = self.state
        self.commit(decision, plan)
        self._at(FaultPoint.AFTER_COMMIT)
        self._publish(before)
        self._at(FaultPoint.AFTER_PUBLISH)

    def _without_lost(self, plan: Plan) -> Plan:
        """The plan without what is gone; what a dead hub wrote with it is dropped."""
        planned = {rid for rid, end in plan.ends.items() if end > self.taken[rid]}
        known = {loss.rid for loss in plan.losses}
        gone = self.losses(planned - known)
        if gone:
            self.log.pop(self.state.batch + 1, None)
        return replace(plan, losses=(*plan.losses, *gone))

    def decision_of(self, received: Sequence[ReceivedRecord], plan: Plan) -> BatchDecision:
        """What these records mean, by this plan; nothing is committed."""
        behind = {rid: taken - 1 for rid, taken in self.taken.items()}
        view = SendingView(
            0,
            0,
            {},
            plan.clock_ms,
            nudged=False,
            marks=self._marks,
            places=self._places(plan.ends),
        )
        aborts = [AbortTransaction(csn, behind) for csn in plan.aborts]
        return decide(
            self.state,
            received,
            self.table,
            self.topology,
            view,
            self.history(received),
            aborts,
            plan.retries,
            plan.losses,
            plan.recovers,
            {rid: self.taken[rid] for rid in plan.retires},
            plan.readmits,
            plan.resumes,
            plan.resyncs,
            plan.pauses,
            [self._resolved(page) for page in plan.pages],
            plan.undelivered,
            plan.writable,
            {
                **{(one.rid, row): one.reason for one, row in self._left(plan.drops)},
                **dict.fromkeys(plan.repairs, COMPARED),
            },
            behind,
            self._own_changes(plan),
            plan.rows_set,
            plan.purge,
            plan.send_nows,
            self._undone(plan),
            plan.of_tables,
        )

    def _undone(self, plan: Plan) -> list[tuple[Arrived, ...]]:
        """The hub's transactions that undo changes, by the state before the batch."""
        own = [arrived.change.csn for _, _, arrived in self._own_changes(plan)]
        largest = max([*own, self.state.largest.get(HUB_RID, "")])
        generator, seen = Generator.behind(HUB_RID, largest or None), self.state.hub_epoch
        found = list[tuple[Arrived, ...]]()
        for order, at in plan.undos:
            made, first = list[Arrived](), None
            for row in undone_rows(order, at, self.topology.tables[order.table], self._judged()):
                csn, generator = generator.next(plan.clock_ms // 1_000)
                first = first or csn
                images = row.then, row.now
                of_row = order.table, row.key, row.op, *images
                change = Change(csn, HUB_RID, 0, *of_row, first, app=UNDONE)
                made.append(Arrived(change, change.content, "", 0, plan.clock_ms, seen, seen))
            if made:
                found.append(tuple(made))
        return found

    def _judged(self) -> Iterator[tuple[int, Judged]]:
        """What the committed batches judged, with the hub epoch."""
        for number, hub_epoch in sorted(self.epochs.items()):
            for entry in self.log[number]:
                if isinstance(entry, Judged):
                    yield hub_epoch, entry

    def _own_changes(self, plan: Plan) -> list[tuple[str | None, int | None, Arrived]]:
        """The hub's changes, with the CSN of what is released, or the rid of who has the row so.

        None of a truncate.
        """
        kept = {(one.rid, one.offset): one.change for one in self.kept}
        made_of = self._released(plan) - self.dropped
        generator = Generator.behind(HUB_RID, self.state.largest.get(HUB_RID))
        made = list[tuple[str | None, int | None, Arrived]]()
        for rid, offset, seen in sorted(plan.releases):
            change = kept[rid, offset]
            if change is None or (rid, offset) not in made_of:
                continue
            csn, generator = generator.next(plan.clock_ms // 1_000)
            own = Change(csn, HUB_RID, 0, *change.row, change.op, change.after, change.before)
            arrived = Arrived(own, own.content, "", 0, plan.clock_ms, seen, seen)
            made.append((change.csn, None, arrived))
        for rid, row, before, after, seen in plan.preferred:
            csn, generator = generator.next(plan.clock_ms // 1_000)
            op = Op.DELETE if after is None else Op.UPDATE
            own = Change(csn, HUB_RID, 0, *row, op, after, before)
            made.append((None, rid, Arrived(own, own.content, "", 0, plan.clock_ms, seen, seen)))
        return made

    def history(self, received: Sequence[ReceivedRecord]) -> dict[str, frozenset[str]]:
        """The known content of this input's CSNs that the RUV covers already."""
        known = defaultdict(set)
        for entry in self.entries():
            if isinstance(entry, Judged):
                known[entry.arrived.change.csn].add(entry.arrived.content)
        for kept in self.kept:
            if kept.change and kept.content and kept.reason not in (Reason.SESSION, Reason.RID):
                known[kept.change.csn].add(kept.content)
        changes = (record.record for record in received)
        largest = self.state.largest
        csns = {
            c.csn
            for c in changes
            if isinstance(c, Change) and c.csn <= largest.get(rid_of(c.csn), "")
        }
        return {csn: frozenset(known[csn]) for csn in csns}

    def commit(self, decision: BatchDecision, plan: Plan) -> None:
        """Take a decision over."""
        self.decided.append(DecidedBatch(self.state, plan, decision))
        if decision.hub_epoch > self.state.hub_epoch:
            self.marks.append(
                EpochMark(
                    decision.hub_epoch, len(decision.entries), decision.state.ruvs, plan.clock_ms
                )
            )
        self.state = decision.state
        self.table.update(decision.rows)
        if plan.purge is not None:
            self._forget_tombstones()
        self.kept += decision.intake.quarantined
        self.kept_in += [self.state.batch] * len(decision.intake.quarantined)
        self.dropped |= {*plan.drops, *self._released(plan)}
        self.hellos += [
            TakenHello(one.rid, self.state.batch, one.offset, hello.epoch, bool(hello.reinit))
            for one, outcome in decision.intake.events
            if isinstance(hello := one.record, Hello) and outcome is ControlOutcome.TAKEN
        ]
        self.repeats += decision.intake.counts["duplicates"]
        self.epochs[self.state.batch] = decision.hub_epoch
        self.taken.update(plan.ends)
        stops = {r.rid: r.stop_offset for r in self.state.replicas.values()}
        self.taken.update({rid: at for rid, at in stops.items() if at is not None})
        self.plan = None

    def _forget_tombstones(self) -> None:
        """Purge them; see checkpoints/rows.py."""
        epoch, reflected = self.state.tombstone_epoch, reflected_by_all(self.state)
        refused = {row for of in self.state.refusals.values() for row in of}
        for key, row in [*self.table.items()]:
            is_old = not row.exists and row.hub_epoch <= epoch
            blocks = any(one.hub_epoch > reflected for one in row.realign)
            if is_old and not blocks and key not in refused:
                del self.table[key]

    def _publish(self, before: HubState | None = None) -> None:
        """Send what the last committed batch decided; sent again it has the same ids."""
        self.undelivered = ()
        for answer in stop_answers(before, self.state):
            agreement = self.state.agreements[answer.agreement]
            if agreement.feed is None:
                self.sent[agreement.consumer].append(answer)
        for name, to_send in self.state.to_send.items():
            agreement = self.state.agreements[name]
            if agreement.feed is not None:
                continue
            if agreement.consumer in self.refusing:
                self.undelivered = (*self.undelivered, name)
                continue
            for update in self.batch_of(agreement, to_send):
                self.sent[agreement.consumer].append(update)
                self._at(FaultPoint.BETWEEN_CHUNKS)
            self._at(FaultPoint.BETWEEN_AGREEMENTS)

        self._write_packets()

    def _write_packets(self) -> None:
        """Write what the last committed batch exports; written again it is the same."""
        written = [self._packet(self.state.agreements[name]) for name in self.state.exported]
        if written:
            self._at(FaultPoint.AFTER_MARKERS)
        for packet in written:
            name, there = packet.header.name, self.packets[packet.header.rid]
            if any(one.header.name == name and one != packet for one in there):
                raise AssertionError(f"{name} is written in two ways")
            there.append(packet)
            self._at(FaultPoint.BETWEEN_PACKETS)

    def _packet(self, agreement: AgreementState) -> Packet:
        to_send, feed = self.state.to_send.get(agreement.name), agreement.feed
        assert feed is not None
        answers = [a for a in stop_answers(None, self.state) if a.agreement == agreement.name]
        updates = self.batch_of(agreement, to_send) if to_send else []
        got = None if feed.got is None else Got(feed.got.outbox, feed.got.place, feed.csn)
        header = UpdatesHeader(
            self.state.replicageneration,
            HUB_RID,
            agreement.name,
            agreement.consumer,
            self.state.generation,
            agreement.session,
            feed.number,
            {},
            {},
            to_send.prev if to_send else None,
            to_send.to if to_send else None,
            got,
            content=Content(len(answers) + len(updates)),
        )
        return Packet(header, (*answers, *updates))

    def _marks(self, after: int, to: int) -> list[EpochMark]:
        """The hub epochs in (after, to], each with the rows that no earlier one of them has."""
        first = dict[RowKey, int]()
        for hub_epoch, entry in self.by_epoch():
            if hub_epoch > after and not isinstance(entry, RangeRefresh):
                first.setdefault(row_of(entry), hub_epoch)
        new = Counter(first.values())
        oldest = max(after, self.state.purge_epoch)
        later = (mark for mark in self.marks if oldest < mark.hub_epoch <= to)
        return [replace(mark, entries=new[mark.hub_epoch]) for mark in later]

    def batch_of(self, agreement: AgreementState, to_send: SendRange) -> list[Update]:
        """The chunks of what this agreement is sent by the last committed batch."""
        subscription = self.sending.subscriptions[agreement.name]
        rid, tables, filters = agreement.consumer, subscription.tables, subscription.rows
        floors, deletes = self.state.replicas[rid].floors, subscription.sends_deletes
        epochs = {
            id(entry): epoch
            for epoch, entry in self.by_epoch()
            if to_send.after < epoch <= to_send.to
        }
        entries = [
            entry
            for _, entry in self.by_epoch()
            if id(entry) in epochs
            and is_for(entry, rid, tables, to_send.known, floors, filters, deletes=deletes)
        ]
        of_rows = [entry for entry in entries if not isinstance(entry, RangeRefresh)]
        sent = [*(last_of_rows(of_rows) if to_send.is_page else of_rows)]
        ranges = [entry for entry in entries if isinstance(entry, RangeRefresh)]
        items = [
            one
            for entry in [*sent, *ranges[len(ranges) - len(to_send.ranges) :]]
            for one in items_of(
                entry,
                filters,
                subscription.cuts,
                self.topology.tables,
                deletes=deletes,
            )
        ]
        of = [epochs[id(entry)] for entry in sent] if to_send.is_page and not to_send.ranges else []
        parts = [slice(at, at + CHUNK_ITEMS) for at in range(0, max(len(items), 1), CHUNK_ITEMS)]
        return [
            replace(
                self._chunk(agreement, to_send, n, len(parts), tuple(items[part])),
                epochs=tuple(sorted(Counter(of[part]).items())),
            )
            for n, part in enumerate(parts)
        ]

    def _chunk(
        self,
        agreement: AgreementState,
        to_send: SendRange,
        chunk: int,
        chunks: int,
        items: tuple[Item | RangeItem, ...],
    ) -> Update:
        return Update(
            agreement.name,
            self.state.generation,
            agreement.session or "",
            to_send.to,
            to_send.prev,
            to_send.position.covers,
            to_send.position.ruv,
            chunk,
            chunks,
            items,
        )

    # -- tables -----------------------------------------------------------------------------

    def everything(self) -> list[tuple[int, LogEntry]]:
        """Every entry that ever was committed, in hub order, with its hub epoch."""
        return [(self.epochs[n], entry) for n in sorted(self.epochs) for entry in self.log[n]]

    def by_epoch(self) -> list[tuple[int, LogEntry]]:
        """Every committed entry that is not purged, in hub order, with its hub epoch."""
        purged, csns = self.state.purge_epoch, {*spared(self.state)}
        return [
            (hub_epoch, entry)
            for hub_epoch, entry in self.everything()
            if hub_epoch > purged
            or (isinstance(entry, Judged) and entry.arrived.change.csn in csns)
        ]

    def entries(self) -> list[LogEntry]:
        """Every committed entry that is not purged, in hub order."""
        return [entry for _, entry in self.by_epoch()]

    def offset(self, rid: int) -> int:
        """How many records of this replica's topic the committed batches have taken."""
        return self.taken[rid]

    def hub_epoch(self) -> int:
        """The last committed hub epoch."""
        return self.state.hub_epoch

    def ruv(self) -> Ruv:
        """The hub's RUV."""
        return self.state.ruv_of(DEFAULT_DATASET)

    def rows(self) -> Mapping[RowKey, str]:
        """The image of every row that exists."""
        return {key: row.image for key, row in self.table.items() if row.exists and row.image}

    def changelog(self) -> Sequence[Judgement]:
        """Every judged change in hub order, purged or not."""
        return [_judgement(h, e) for h, e in self.everything() if isinstance(e, Judged)]

    def conflicts(self) -> Sequence[Conflict]:
        """Every recorded loser."""
        judged = (entry for _, entry in self.everything() if isinstance(entry, Judged))
        return [_conflict(one) for one in judged if one.conflict]

    def lost_elsewhere(self) -> Collection[str | None]:
        """No other hub reads its topics."""
        return ()

    def undone(self) -> Collection[Change]:
        """The changes by which the hub undid others."""
        judged = (one.arrived.change for _, one in self._judged())
        return [change for change in judged if change.app == UNDONE]

    def refused(self) -> Mapping[tuple[int, RowKey], int]:
        """(rid, row) -> how often its database refused it, of the rows it has not taken since."""
        mine = (one for rows in self.state.refusals.values() for one in rows.values())
        return {(one.rid, one.row): one.attempts for one in mine}

    def quarantine(self) -> Sequence[Kept]:
        """Everything in quarantine."""
        return [Kept(kept.rid, kept.offset, kept.reason) for kept in self.kept]

    def uncarried(self) -> Collection[tuple[int, RowKey]]:
        """(rid, row) of what its writer holds and nobody else can take."""
        return {(one.rid, row) for one, row in self._left()}

    def drop_uncarried(self) -> None:
        """Append an operator's commands to drop every record of each uncarried row."""
        listed = self.uncarried()
        self.requested_drops += [
            (one.rid, one.offset)
            for one in self.kept
            if one.change and one.reason.is_uncarried and (one.rid, one.change.row) in listed
        ]

    def release(self, reason: Reason) -> None:
        """Append an operator's commands to release all that is in quarantine for this reason."""
        self.requested_releases += [
            (one.rid, one.offset, self.state.hub_epoch)
            for one in self.kept
            if one.reason is reason and (one.rid, one.offset) not in self.dropped
        ]

    def set_right(self, rid: int, row: RowKey) -> None:
        """Append an operator's command to send a replica the hub's row (`repair`)."""
        self.requested_repairs.append((rid, row))

    def prefer(self, rid: int, row: RowKey, image: str | None) -> None:
        """Append an operator's command to let this image of a replica stand for everybody."""
        before, seen = self.rows().get(row), self.state.hub_epoch
        self.requested_preferred.append((rid, row, before, image, seen))

    def undo(self, order: UndoOrder) -> None:
        """Append an operator's command to write rows back as they stood."""
        self.requested_undos.append((order, self.state.hub_epoch))

    def _released(self, plan: Plan) -> set[Place]:
        """What becomes a change of the hub; a truncate and what is still wrong stay as they are."""
        places = {(rid, offset) for rid, offset, _ in plan.releases}
        return {
            (one.rid, one.offset)
            for one in self.kept
            if one.change
            and one.change.op is not Op.TRUNCATE
            and (one.rid, one.offset) in places
            and self._check(one.rid, "-", one.change, plan.writes, plan.unknown).reason is None
        }

    def _left(self, places: Collection[Place] | None = None) -> list[tuple[Quarantined, RowKey]]:
        """The newest record of each row that nothing has set right, if it is at these places."""
        newest = dict[tuple[int, RowKey], Quarantined]()
        for number, kept in zip(self.kept_in, self.kept, strict=True):
            is_open = (kept.rid, kept.offset) not in self.dropped and kept.reason.is_uncarried
            if kept.change and is_open and not self._is_set_right(number, kept, kept.change.row):
                newest[kept.rid, kept.change.row] = kept
        return [
            (kept, row)
            for (_, row), kept in newest.items()
            if places is None or (kept.rid, kept.offset) in places
        ]

    def _is_set_right(self, number: int, kept: Quarantined, row: RowKey) -> bool:
        """Return whether its row was overwritten or written again since this batch."""
        since = [e for n in sorted(self.epochs) if n >= number for e in self.log[n]]
        ranges = [
            {"batch": number, "rid": e.to, "table": e.range.table, "key_after": e.range.after}
            | {"key": e.range.to}
            for e in since
            if isinstance(e, RangeRefresh)
        ]
        receives = {kept.rid: sorted(t for t in self.topology.tables if self._sees(kept.rid, t))}
        of_row = {"batch": number, "rid": kept.rid, "table": row[0], "key": row[1]}
        of_row |= {"reason": kept.reason}
        return (
            any(_sets_right(entry, kept, row, self._sees) for entry in since)
            or SentRanges(ranges, receives, self.topology.tables).set_right(of_row)
            or last_starts(self.hellos).get(kept.rid, _NEVER) > (number, kept.offset)
        )

    def _sees(self, rid: int, table: str) -> bool:
        return self.sending.sends_all(rid, table)

    def ended(self) -> frozenset[str]:
        """The CSNs of the transactions that a hello, an abort or the quarantine ended."""
        return frozenset(self.state.open.ended_csns)

    def agreement_with(self, rid: int) -> AgreementState:
        """The agreement with this consumer."""
        return next(a for a in self.state.agreements.values() if a.consumer == rid)

    def says_level(self) -> bool:
        """Return what it answers to `level`; quarantined and refused rows count as different."""
        is_at_work = self.up and not self.is_standing and self.plan is None
        is_different = self.kept or self.refused() or self.state.open.lists.committed
        if not is_at_work or is_different or self._has_orders() or self.state.paused_tables:
            return False
        return all(self._is_level(one.consumer) for one in self.topology.subscriptions.values())

    def _is_level(self, rid: int) -> bool:
        """Return whether it has read all of a replica, hears it, and has its word for all."""
        replica, agreement = self.state.replicas.get(rid), self.agreement_with(rid)
        if replica is None or replica.is_stopped or agreement.is_stopped or lacks_rows(agreement):
            return False
        is_heard = unheard(replica, None, 0, sys.maxsize) is None
        lacking = lack(self.ruv(), acked(self.state, agreement, rid, DEFAULT_DATASET)).starts
        has_all = agreement.acked_covers == self.state.hub_epoch and not lacking
        has_all = has_all and not replica.unpublished
        return is_heard and has_all and self.taken[rid] == len(self.topics[rid])

    def _has_orders(self) -> bool:
        """Return whether an operator's order waits for the next batch."""
        return bool(
            self.requested_aborts
            or self.requested_retries
            or self.requested_recovers
            or self.requested_retires
            or self.requested_readmits
            or self.requested_resumes
            or self.requested_resyncs
            or self.requested_pauses
            or self.requested_send_nows
            or self.requested_tables
            or self.requested_rows
            or self.requested_repairs
            or self.requested_preferred
            or self.requested_undos
        )

    def standing(self, rid: int) -> RuvComparison:
        """The agreement with this consumer, as `status` shows it."""
        agreement = self.agreement_with(rid)
        return RuvComparison(agreement.status_text, agreement.acked_covers, agreement.acked_ruv)


def _sets_right(
    entry: LogEntry, kept: Quarantined, row: RowKey, sees: Callable[[int, str], bool]
) -> bool:
    """Return whether an entry of the log left the row of a quarantined change as the hub has it."""
    has_columns = kept.reason is not Reason.COLUMN or _deletes(entry)
    match entry:
        case Judged(verdict=Verdict.ACCEPTED | Verdict.ADOPTED):
            change = entry.arrived.change
            is_it = change.row == row or (change.op is Op.TRUNCATE and change.table == row[0])
            if change.rid == kept.rid:
                is_above = kept.change is None or change.csn > kept.change.csn
                return is_it and is_above and entry.arrived.offset > kept.offset
            is_sent = entry.verdict is Verdict.ACCEPTED and sees(kept.rid, row[0])
            return is_it and is_sent and has_columns
        case Refresh():
            return entry.to == kept.rid and (entry.table, entry.key) == row and has_columns
        case _:
            return False


def _deletes(entry: LogEntry) -> bool:
    match entry:
        case Judged():
            return not entry.arrived.change.op.has_image
        case Refresh():
            return entry.row.image is None
        case _:
            return False


def _is_of(judged: Judged, rid: int) -> bool:
    return judged.arrived.change.rid == rid


def _conflict(judged: Judged) -> Conflict:
    change, row = judged.arrived.change.csn, judged.before.csn
    return Conflict(row, change) if judged.row_lost else Conflict(change, row)


def _judgement(hub_epoch: int, judged: Judged) -> Judgement:
    change = judged.arrived.change
    return Judgement(
        change.csn,
        judged.arrived.content,
        change.prim_csn,
        judged.verdict,
        judged.concurrent,
        judged.before.csn,
        hub_epoch,
    )
