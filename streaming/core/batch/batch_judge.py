"""Judge the transactions of one batch, one change at a time, in hub order."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from streaming.core.batch.after import TablesAfter
from streaming.core.batch.elsewhere import as_seen_elsewhere
from streaming.core.batch.sending import CONFLICT, FILTERED, PAGE, WHOLE, LogEntry, Refresh
from streaming.core.conflict.judge import (
    Cause,
    Judged,
    Verdict,
    adopts,
    cause_of,
    judge,
    meets_nothing,
    realign_epoch_of,
    rejected_whole,
    rejects_transaction,
    unconfigured,
)
from streaming.core.conflict.truncate import judged_truncate, met_by
from streaming.core.conflict.winner import Resolution, kept_hidden, winner
from streaming.core.intake.refused_rows import NONE_REFUSED
from streaming.core.model.change import Change, Op, RowKey
from streaming.core.model.function import ConflictFunction, ConflictRule
from streaming.core.model.refusal import Refusal, Refusals
from streaming.core.model.row import (
    ALL_OFFSETS,
    Arrived,
    Floor,
    Realign,
    RowState,
    realigned,
    without_tombstone,
)
from streaming.core.model.table import OnHidden, Table
from streaming.core.model.truncation import ALL_KEYS, Truncation
from streaming.core.records.arrival import Repair
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.topology import Topology
from streaming.core.tracking.ranges import KeyRange, RangeRealign, key_order, with_range
from streaming.core.tracking.resync import ResyncPage, goes_live

UNKNOWN_ROW = RowState()
"""The state of a row that no replica has written: a tombstone without an author."""


@dataclass(slots=True)
class BatchJudge:
    """Judges the transactions of one batch and keeps the changed rows in an overlay.

    `earlier_resolutions`: CSN -> what the user's function returned when this batch was judged
    before. `refusals`: the rows that replicas refused, as taken with this batch. `ranges`: the
    ranges of keys that earlier batches sent; each realigns its keys. `others`: table -> what stands
    for its rows that `rows` lacks, as `met_by` needs them; only tables that are truncated in the
    batch are asked for. `rescans`: (rid, table) of tables that a replica must get back as a whole.
    `standing`: CSN of the hub's change -> the rid of the replica that has the row so already.
    `tombstone_epoch`: tombstones up to this hub epoch may be purged.
    """

    rows: Mapping[RowKey, RowState]
    hub_epoch: int
    topology: Topology
    replicas: Mapping[int, ReplicaState]
    earlier_resolutions: Mapping[str, Resolution] = field(default_factory=dict)
    refusals: Refusals = field(default_factory=dict)
    ranges: list[RangeRealign] = field(default_factory=list)
    truncations: dict[str, Truncation] = field(default_factory=dict)
    others: Callable[[str], Iterable[RowState]] = lambda _: ()
    rescans: set[tuple[int, str]] = field(default_factory=set)
    standing: Mapping[str, int] = field(default_factory=dict)
    tombstone_epoch: int = 0
    changed: dict[RowKey, RowState] = field(default_factory=dict)
    entries: list[LogEntry] = field(default_factory=list)
    refreshed: dict[tuple[int, RowKey], Refresh] = field(default_factory=dict)
    repaired: set[tuple[int, RowKey]] = field(default_factory=set)
    were_elsewhere: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        """Note whose changes another hub's RUV may vouch for; of a hub that is alone nobody's."""
        self.were_elsewhere = frozenset(
            rid
            for rid, one in self.replicas.items()
            if any(session.elsewhere for session in one.sessions)
        )

    def row(self, key: RowKey) -> RowState:
        """Return the row as it is at this position in hub order."""
        known = self.changed.get(key)
        if known is not None:
            return known
        row = self.truncated(key, self.rows.get(key, UNKNOWN_ROW))
        row = without_tombstone(row, self.tombstone_epoch)
        return self._in_ranges(key, row) if self.ranges else row

    def truncated(self, key: RowKey, row: RowState) -> RowState:
        """Return a row of the tables with what truncates have made of it."""
        truncation = self.truncations.get(key[0])
        return row if truncation is None else truncation.applied_to(row)

    def _in_ranges(self, key: RowKey, row: RowState) -> RowState:
        """Return the row with the realigns of the ranges that hold it."""
        table = self.topology.tables.get(key[0])
        here = [one for one in self.ranges if one.range.table == key[0]] if table else []
        order = key_order(table) if here and table else None
        for one in here:
            if order is not None and one.range.holds(key[1], order):
                row = realigned(row, one.as_realign())
        return row

    def judge(self, transaction: Sequence[Arrived]) -> None:
        """Judge a transaction, whole or change by change, and refresh the rows that it lost."""
        if self.were_elsewhere:
            transaction = [self._as_seen_elsewhere(one) for one in transaction]
        known = [one for one in transaction if one.change.table in self.topology.tables]
        is_rejected = any(self._rejects_transaction(one) for one in known)
        # the causes before a change overwrites its row
        causes = {one.change.csn: self._cause(one) for one in known} if is_rejected else {}
        taken, last = set[RowKey](), {one.change.row: one for one in transaction}
        for one in transaction:
            row = one.change.row
            if one.change.table not in self.topology.tables:
                self._enter(unconfigured(one, self.row(row)))
            elif is_rejected:
                self._reject_whole(one, causes[one.change.csn])
            elif one.change.op.is_of_table:
                self._judge_truncate(one)
            elif self._judge_one(one, is_seen=row in taken):
                taken.add(row)
            if row in taken and last[row] is one:  # what hides it for a moment only does not count
                self._take_back_hidden(one)

    def _as_seen_elsewhere(self, one: Arrived) -> Arrived:
        """The change with what its replica had seen of its row by another hub."""
        change = one.change
        is_hidden = not self.topology.sees(change.rid, change.table)
        if change.rid not in self.were_elsewhere or change.op.is_of_table or is_hidden:
            return one
        row, function, author = self._met(one), self._function(one), self.replicas[change.rid]
        return as_seen_elsewhere(one, row, function, author.floors, author.sessions)

    def _met(self, one: Arrived) -> RowState:
        """The row that a change meets; of a truncate what stands for all rows of its table.

        What writes a row that is unknown has seen a row: it was deleted, and the tombstone of that
        may be purged. An insert has not, and meets nothing.
        """
        change = one.change
        if not change.op.is_of_table:
            row = self.row(change.row)
            is_purged = row.csn is None and change.op is not Op.INSERT
            return row._replace(hub_epoch=self.tombstone_epoch) if is_purged else row
        return met_by(change.rid, self._of_table(change.table))

    def _of_table(self, table: str) -> list[RowState]:
        """The rows of a table as they are here, with what stands for those that are not known."""
        return [*map(self.row, self._keys_of(table)), *self._others(table)]

    def _keys_of(self, table: str) -> set[RowKey]:
        return {key for key in (*self.rows, *self.changed) if key[0] == table}

    def _realigns_of(self, table: str) -> list[Realign]:
        """The realigns of a table's rows, and those of its ranges: neither takes others away."""
        rows = [
            self.changed.get(key) or self.truncated(key, self.rows[key])
            for key in self._keys_of(table)
        ]
        return [one for row in (*rows, *self._others(table)) for one in row.realign]

    def _others(self, table: str) -> list[RowState]:
        """What stands for the rows of a table that are not in `rows`, written or not."""
        blocked = [one.as_realign() for one in self.ranges if one.range.table == table]
        rows = [*self.others(table), RowState(realign=tuple(blocked))]
        truncation = self.truncations.get(table)
        return [truncation.applied_to(row) for row in rows] if truncation else rows

    def _as_hidden(self, one: Arrived, row: RowState) -> Arrived:
        """The change; of a row that its replica is not shown it has seen nothing."""
        return one._replace(mre=0, mre_same=0) if self._is_hidden(one, row) else one

    def _is_hidden(self, one: Arrived, row: RowState) -> bool:
        """Return whether the replica of a change is not shown the row that it meets.

        Covers moved past what was written there (docs/traps.md, A row that a filter hides). So they
        do past the delete of a row that stays at its replica; an insert has seen no row there. A
        truncate may take such rows, wherever the table has a filter.
        """
        change = one.change
        if change.op.is_of_table:
            return self.topology.has_filter(change.rid, change.table)
        if row.exists:
            return self.topology.hides(change.rid, change.table, row)
        keeps = self.topology.keeps_deleted(change.rid, change.table)
        return keeps and change.op is not Op.INSERT

    def _rejects_transaction(self, one: Arrived) -> bool:
        row, floors = self._met(one), self._floors(one.change.rid)
        one = self._as_hidden(one, row)
        table = self.topology.tables[one.change.table]
        if adopts(one, row, table) or meets_nothing(one, row):
            return False
        function, is_refused = self._function(one), self._is_refused(one)
        is_left = self._is_left(one)
        return rejects_transaction(
            one, row, function, floors, is_refused=is_refused, is_left=is_left
        )

    def _cause(self, one: Arrived, *, same_epoch: bool = False) -> Cause | None:
        row, floors = self._met(one), self._floors(one.change.rid)
        one = self._as_hidden(one, row)
        function, is_refused = self._function(one), self._is_refused(one)
        return cause_of(one, row, function, floors, is_refused=is_refused, same_epoch=same_epoch)

    def _is_refused(self, one: Arrived) -> bool:
        """Return whether its replica refused the row as it stands, of a truncate any of them."""
        return any(refusal.hides(self.row(refusal.row), one) for refusal in self._refused(one))

    def _is_left(self, one: Arrived) -> bool:
        """Return whether its replica has refused the row, and had what it had before."""
        return any(refusal.leaves(self.row(refusal.row), one) for refusal in self._refused(one))

    def _refused(self, one: Arrived) -> list[Refusal]:
        """The refusals by its replica of the row, of a truncate of any row of the table."""
        mine = self.refusals.get(one.change.rid, NONE_REFUSED)
        if one.change.op.is_of_table:
            return [refusal for row, refusal in mine.items() if row[0] == one.change.table]
        return [mine[one.change.row]] if one.change.row in mine else []

    def _function(self, one: Arrived) -> ConflictFunction:
        return self.topology.tables[one.change.table].function

    def _reject_whole(self, one: Arrived, cause: Cause | None) -> None:
        same_only = cause is not None and self._cause(one, same_epoch=True) is None
        row, floors = self._met(one), self._floors(one.change.rid)
        judged = rejected_whole(one, row, self.hub_epoch, cause, floors, same_epoch_only=same_only)
        judged = _without_purged(judged)
        self._enter(judged)
        if one.change.op.is_of_table:
            self._send_table(one.change.rid, one.change.table, rejects_transaction=True)
        else:
            self._refresh_once(one, judged.after, WHOLE)

    def _judge_truncate(self, one: Arrived) -> None:
        """Accept a truncate that has seen every row; else its replica gets the table back."""
        change, met, cause = one.change, self._met(one), self._cause(one)
        same = cause is not None and self._cause(one, same_epoch=True) is None
        blocked = realign_epoch_of(one, met, self._floors(change.rid))
        judged = judged_truncate(one, met, self.hub_epoch, cause, blocked, same_epoch_only=same)
        self._enter(judged)
        if cause is not None:
            self._send_table(change.rid, change.table)
            return
        # what is repaired in this batch is sent as it stands behind the truncate
        earlier = [r for r in self._realigns_of(change.table) if r.hub_epoch < self.hub_epoch]
        behind = self._overtaking(one, earlier)
        known = self.truncations.get(change.table)
        number = known.incarnation + 1 if known else 1
        new = Truncation(change.rid, self.hub_epoch, change.csn, number)
        for key in [key for key in self.changed if key[0] == change.table]:
            self.changed[key] = new.tombstone(self.changed[key])
        for key in [key for key in self.rows if key[0] == change.table and key not in self.changed]:
            self.changed[key] = new.tombstone(self.row(key))
        self.truncations[change.table] = new
        if behind:
            self._send_table(change.rid, change.table, min(behind))

    def _overtaking(self, one: Arrived, realigns: Iterable[Realign]) -> list[int]:
        """The offsets of the records for which its replica was sent rows from before a change.

        By these realigns, and by the floors of earlier batches: each overtakes what it does not
        block, and its record may be that of the change. The verdict on the change stays, so it
        does not depend on how the input is cut into batches.
        """
        rid = one.change.rid
        behind = [r.offset for r in realigns if r.rid == rid]
        behind += [f.offset for f in self._floors(rid) if f.hub_epoch < self.hub_epoch]
        return [offset for offset in behind if offset >= one.offset]

    def _send_table(
        self, rid: int, table: str, offset: int = ALL_OFFSETS, *, rejects_transaction: bool = False
    ) -> None:
        """Send a replica a whole table; what it writes there is concurrent until it has it.

        `offset`: of the record in its topic behind which that holds.
        """
        whole = RangeRealign(KeyRange(table), rid, self.hub_epoch, offset)
        self._add(replace(whole, rejects_transaction=rejects_transaction))
        self.rescans.add((rid, table))

    def _add(self, whole: RangeRealign) -> None:
        """Realign all rows of a table from here on, those that the batch changed too."""
        self.ranges[:] = with_range(self.ranges, whole)
        for key in [key for key in self.changed if key[0] == whole.range.table]:
            self.changed[key] = realigned(self.changed[key], whole.as_realign())

    def tables_after(self) -> TablesAfter:
        """Return what the batch makes of whole tables."""
        return TablesAfter(tuple(self.ranges), dict(self.truncations), frozenset(self.rescans))

    def _judge_one(self, one: Arrived, *, is_seen: bool) -> bool:
        """Judge a change of a row; whether it was in no conflict.

        `is_seen`: its transaction wrote the row before, and that was in no conflict.
        """
        change = one.change
        table, row = self.topology.tables[change.table], self._met(one)
        is_hidden = not is_seen and self._is_hidden(one, self.row(change.row))
        one = one._replace(mre=0, mre_same=0) if is_hidden else one
        keeps = is_hidden and table.on_hidden is OnHidden.QUARANTINE
        floors = self._floors(change.rid)
        judged = judge(
            one,
            row,
            self.hub_epoch,
            table,
            floors,
            kept_hidden if keeps else self._resolve,
            self.topology.record_bytes,
            is_refused=self._is_refused(one),
        )
        judged = _without_purged(judged)
        self._enter(judged)
        if judged.cause is not None:
            self._refresh_once(one, judged.after, CONFLICT)
        elif judged.failure is not None:
            if not judged.failure.reason.is_uncarried:
                self._refresh_once(one, judged.after, judged.failure.reason)
        elif judged.verdict is Verdict.ACCEPTED:
            self._refresh_overtaken(one, judged.after)
        if judged.verdict is Verdict.ACCEPTED:
            self._send_to_who_refused(change)
        return judged.cause is None and judged.failure is None

    def _resolve(self, one: Arrived, row: RowState, table: Table) -> Resolution:
        earlier = self.earlier_resolutions.get(one.change.csn)
        if earlier is not None and table.function.rule is ConflictRule.USER:
            return earlier
        return winner(one, row, table, self.topology.users.get(str(table.function)))

    def _enter(self, judged: Judged) -> None:
        if not judged.arrived.change.op.is_of_table:
            self.changed[judged.arrived.change.row] = judged.after
        self.entries.append(judged)
        rid = self.standing.get(judged.arrived.change.csn)
        if rid is not None and judged.verdict is not Verdict.ACCEPTED:
            self._take_back_standing(rid, judged)

    def _take_back_standing(self, rid: int, judged: Judged) -> None:
        """Send the row to the replica that has what was not taken: nobody else would."""
        key = judged.arrived.change.row
        if key[0] in self.topology.tables:
            self.changed[key] = realigned(judged.after, Realign(rid, self.hub_epoch))
            self.entries.append(Refresh(rid, *key, judged.after, CONFLICT))

    def realign(self, repairs: Sequence[Repair]) -> None:
        """Block the changes that follow each repair's record in the topic."""
        for repair in repairs:
            if repair.row[1] == ALL_KEYS:
                keys = KeyRange(repair.row[0])
                self._add(RangeRealign(keys, repair.rid, self.hub_epoch, repair.offset))
                continue
            realign = Realign(repair.rid, self.hub_epoch, repair.offset)
            self.changed[repair.row] = realigned(self.row(repair.row), realign)
            self.repaired.add((repair.rid, repair.row))

    def refresh(self, repairs: Sequence[Repair]) -> None:
        """Refresh each repaired row once, after everything that was judged."""
        first: dict[tuple[int, RowKey], Repair] = {}
        for repair in sorted(repairs, key=lambda r: (r.rid, r.offset)):
            first.setdefault((repair.rid, repair.row), repair)
        for (rid, key), repair in first.items():
            if key[1] == ALL_KEYS:
                self.rescans.add((rid, key[0]))
            else:
                self.entries.append(Refresh(rid, *key, self.row(key), repair.cause, repair.offset))

    def send_tracked(self, page: ResyncPage, consumer: int) -> None:
        """Refresh the tracked rows of a page, but for those written behind the resync's end.

        Under a filter those too: what hides a row need not go live (docs/traps.md, A page leaves
        out what is newer).
        """
        for one in page.parts:
            for key, tracked_epoch in one.tracked:
                row_key = (one.part.table, key)
                row = self.row(row_key)
                is_filtered = self.topology.has_filter(consumer, one.part.table)
                if is_filtered or not goes_live(tracked_epoch, row):
                    self.changed[row_key] = realigned(row, Realign(consumer, self.hub_epoch))
                    self.entries.append(Refresh(consumer, *row_key, row, PAGE))

    def take_entries(self) -> list[LogEntry]:
        """Return the entries since the last call, and forget them."""
        entries, self.entries = self.entries, []
        return entries

    def _refresh_once(self, one: Arrived, row: RowState, cause: str) -> None:
        """Send the row as it is, unless the same version was just sent to the same replica."""
        rid, key = one.change.rid, one.change.row
        refresh = Refresh(rid, *key, row, cause)
        last = self.refreshed.get((rid, key))
        if last is None or last.row.csn != row.csn or last.cause != cause:
            self.entries.append(refresh)
            self.refreshed[rid, key] = refresh

    def _refresh_overtaken(self, arrived: Arrived, row: RowState) -> None:
        """Send the row again to its author, which an earlier refresh set back to an older version.

        This happens when the change waited while a later record of the topic caused a repair of
        the row, or was a hello that reported the change as lost.
        """
        rid, key = arrived.change.rid, arrived.change.row
        if not row.realign and not self._floors(rid):
            return
        is_repaired = (rid, key) in self.repaired
        sent = (r for r in row.realign if not is_repaired or r.hub_epoch < self.hub_epoch)
        if behind := self._overtaking(arrived, sent):
            realign = Realign(rid, self.hub_epoch, min(behind))
            self.changed[key] = realigned(row, realign)
            self.entries.append(Refresh(rid, *key, row, "overtaken", realign.offset))

    def _send_to_who_refused(self, change: Change) -> None:
        """Send the row to each other replica that refused it and is not sent all, or its delete.

        What leaves it hidden there is not sent, and would not end the refusal.
        """
        key = change.row
        for rid, mine in self.refusals.items():
            if rid != change.rid and key in mine and self.topology.sends_some(rid, key[0]):
                self.changed[key] = realigned(self.changed[key], Realign(rid, self.hub_epoch))
                self.entries.append(Refresh(rid, *key, self.changed[key], FILTERED))

    def _take_back_hidden(self, arrived: Arrived) -> None:
        """Delete a row at its author that is not shown it any more: no later change would come."""
        rid, key = arrived.change.rid, arrived.change.row
        row = self.row(key)
        if self.topology.hides(rid, key[0], row):
            self.changed[key] = realigned(row, Realign(rid, self.hub_epoch))
            self.entries.append(Refresh(rid, *key, row, FILTERED))

    def _floors(self, rid: int) -> tuple[Floor, ...]:
        author = self.replicas.get(rid)  # None: the hub itself, which loses no state
        return author.floors if author else ()


def _without_purged(judged: Judged) -> Judged:
    """The verdict, when the row stands as one that is unknown: the purge wrote no row."""
    row = judged.after
    return judged if row.csn else judged._replace(after=row._replace(hub_epoch=0))
