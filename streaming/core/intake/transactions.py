"""From changes in topic order to eligible transactions: duplicates, pending lists, quarantine.

Decided record by record, so nothing depends on how the input is cut into batches
(docs/protocol.md, Duplicates; docs/protocol.md, Pending lists).
"""

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from streaming.core.conflict.winner import missing
from streaming.core.counts.counter_keys import DUPLICATES, CountKey, ReplicaKey
from streaming.core.intake.believed import BelievedCsns
from streaming.core.intake.duplicates import KnownCsns
from streaming.core.intake.opnos import SeenOpnos, seen_opnos
from streaming.core.intake.ruv_builder import RuvBuilder
from streaming.core.matrix.rows import counted
from streaming.core.model.change import Change, RowKey
from streaming.core.model.csn import is_csn_of, rid_of
from streaming.core.model.row import Arrived
from streaming.core.model.ruv import Ruv
from streaming.core.records.arrival import (
    ControlOutcome,
    Quarantined,
    Repair,
    quarantined_change,
    quarantined_record,
)
from streaming.core.records.images import row_of
from streaming.core.records.record import Reason, ReceivedRecord
from streaming.core.state.hub_state import HubState
from streaming.core.state.open_transactions import EndedTransaction, OpenTransactions
from streaming.core.state.pending import Context, ListKey
from streaming.core.state.reflection import mre, mre_same
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.topology import Topology

Transaction = tuple[Arrived, ...]
"""The changes of one transaction in CSN order."""


@dataclass(frozen=True, slots=True)
class EligibleOnDisk:
    """An evicted transaction that became eligible: table `pending` has its images.

    `fresh`: its changes that came with this batch, in CSN order; `pending` has the others.
    """

    context: Context
    fresh: Transaction


@dataclass(slots=True)
class TransactionIntake:
    """One batch's working copy of the state, as far as changes and their transactions need it.

    `history`: see KnownCsns. A CSN is known, and an opno is taken, whatever the data set; it is
    late within its own. `wanted`: the transactions of which evicted facts are needed after all: if
    there are some, nothing of this holds, and with them restored the batch must be taken anew.
    `standing`: CSN of the hub's change -> the rid of the replica that has the row so already.
    """

    state: HubState
    topology: Topology
    history: Mapping[str, frozenset[str]] = field(default_factory=dict)
    eligible: list[Transaction] = field(default_factory=list)
    eligible_on_disk: list[EligibleOnDisk] = field(default_factory=list)
    wanted: set[Context] = field(default_factory=set)
    quarantined: list[Quarantined] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    standing: dict[str, int] = field(default_factory=dict)
    ended: list[tuple[Context, str, tuple[Arrived, ...]]] = field(default_factory=list)
    events: list[tuple[ReceivedRecord, ControlOutcome]] = field(default_factory=list)
    counts: Counter[CountKey] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.replicas = dict(self.state.replicas)
        self.opnos = {rid: seen_opnos(replica) for rid, replica in self.replicas.items()}
        self.open = self.state.open.copy()
        self.spans = RuvBuilder(self.state)
        self.numbers = dict(self.state.numbers)
        self.known = KnownCsns(self.open, self.history, self.state.largest)
        pending = self.open.lists.largest_of
        believed = {rid: max(one.believed, pending(rid)) for rid, one in self.replicas.items()}
        self.believed = BelievedCsns(self.known, believed, self.topology.skew_s)

    replicas: dict[int, ReplicaState] = field(init=False)
    """The ordinals apart, which are in `opnos` until `replica_states`."""
    opnos: dict[int, SeenOpnos] = field(init=False)
    open: OpenTransactions = field(init=False)
    spans: RuvBuilder = field(init=False)
    numbers: dict[int, int] = field(init=False)
    known: KnownCsns = field(init=False)
    believed: BelievedCsns = field(init=False)

    @property
    def ruvs(self) -> dict[str, Ruv]:
        """The hub's RUV of each data set after what became eligible so far."""
        return self.spans.ruvs

    def replica_states(self) -> dict[int, ReplicaState]:
        """The replicas after what was taken so far."""
        return {
            rid: replace(self.opnos[rid].of(replica), believed=self.believed.left_of(rid))
            for rid, replica in self.replicas.items()
        }

    # -- changes ----------------------------------------------------------------------------

    def _change(self, received: ReceivedRecord, change: Change, replica: ReplicaState) -> None:
        if change.snapshot not in (None, replica.snapshot):
            detail = f"snapshot {change.snapshot}: the hello of its session does not name it"
            self._quarantine(received, Reason.SESSION, detail)
            return
        content = received.content or change.content
        context = (change.prim_csn or change.csn, received.rid)
        known = self.known.contents(change.csn)
        if content in known:
            self._repeated(received, change, content)
            return
        skew = self.believed.check(received, change.csn)
        bad = self._bad(change, context, reused=bool(known)) or skew
        if bad is not None:
            self._bad_change(received, change, content, context, *bad)
            return
        self._fill_opno(received.rid, change.opno)
        hidden = not self.topology.sees(received.rid, change.table)
        arrived = Arrived(
            change,
            content,
            received.session or "",
            received.offset,
            received.time_ms,
            0 if hidden else mre(replica.sessions, change.epoch),
            0 if hidden else mre_same(replica.sessions, change.epoch),
        )
        key = self._list_of(change)
        self.open.changes[change.csn] = arrived
        self.open.lists.insert(change.csn, key, context)
        if change.prim_csn is None:
            self.open.lists.commit(context)
        self.roll_up({key, *self.lists_behind(received.rid)})

    def _repeated(self, received: ReceivedRecord, change: Change, content: str) -> None:
        """Count a change that is known already; its event, without images, says where it stood."""
        bare = change._replace(before=None, after=None)
        self._count_duplicate(replace(received, record=bare, content=content))

    def _list_of(self, change: Change) -> ListKey:
        return self.topology.dataset_of(change.table), change.rid

    def _bad(self, change: Change, context: Context, *, reused: bool) -> tuple[Reason, str] | None:
        key = self._list_of(change)
        purged = self.state.purge_ruv_of(key[0]).max_of(change.rid)
        largest = self.spans.largest(key)
        if reused:
            return Reason.REUSED, f"CSN {change.csn} was used before with other content"
        if purged is not None and change.csn <= purged:
            return Reason.PURGED, f"CSN {change.csn} is not above the purge RUV {purged}"
        if change.opno is not None and change.opno in self.opnos[change.rid]:
            return Reason.REUSED, f"opno {change.opno} is filled: by another CSN, or given up"
        lacking = missing(change, self.topology.tables[change.table])
        if lacking is not None:
            return lacking
        ended = self.open.ended.get(context)
        if ended is not None:
            reason = Reason(ended.reason) if ended.reason in _REASONS else Reason.ENDED
            return reason, f"transaction {context[0]} was ended: {ended.reason}"
        if change.csn <= largest:
            return Reason.LATE, f"CSN {change.csn} is below {largest}, which is eligible already"
        is_open = context in self.open.lists.members
        if change.prim_csn is None and is_open:
            return Reason.REUSED, f"CSN {change.csn} names a transaction that is open"
        passed = context[0] <= self.known.largest.get(rid_of(context[0]), "")
        closed = context in self.open.lists.committed or (not is_open and passed)
        if change.prim_csn is not None and closed:
            detail = f"transaction {context[0]} was committed already, or its first change lost"
            return Reason.LATE, detail
        return None

    def _bad_change(
        self,
        received: ReceivedRecord,
        change: Change,
        content: str,
        context: Context,
        reason: Reason,
        detail: str,
    ) -> None:
        """Put a change into quarantine; its transaction goes with it.

        Their rows are repaired, unless the transaction ended because one of them is uncarried.
        """
        self._quarantine(received, reason, detail, content)
        self._fill_opno(received.rid, change.opno)
        self.known.quarantine(change.csn, content)
        self._repair(received, change.row, reason)
        ended = self.open.ended.get(context)
        if ended is not None:
            self._tell_ended(received, context, ended)
        elif change.prim_csn is not None:
            self._take_along(received, context, reason)
        self.roll_up(self.lists_behind(received.rid))

    def _take_along(self, received: ReceivedRecord, context: Context, reason: Reason) -> None:
        """Quarantine what is open of a transaction, and remember that it ended."""
        self.want(context)
        for arrived in [self.open.changes[csn] for csn in self.open.lists.csns_of(context)]:
            detail = f"its transaction {context[0]} went to quarantine: {reason}"
            self.quarantined.append(quarantined_change(arrived, reason, detail))
            self._repair(received, arrived.change.row, reason)
        self.end(context, reason.value)

    def _tell_ended(
        self, received: ReceivedRecord, context: Context, ended: EndedTransaction
    ) -> None:
        """Repair the rows of a transaction that its origin holds and a hello ended, once.

        Those of one that an operator ended were refreshed when he did; the realigns block what
        is written over it.
        """
        if ended.reason not in _NOT_NUMBERED:
            return
        if ended.reason == HELLO:
            if ended.on_disk:
                self.wanted.add(context)
            for row in ended.rows:
                self._repair(received, row, Reason.ENDED)
        self.open.ended[context] = replace(ended, reason=Reason.ENDED.value)
        self.ended.append((context, Reason.ENDED.value, ()))

    def _commit(self, received: ReceivedRecord, context: Context) -> None:
        ended = self.open.ended.get(context)
        if ended is not None and ended.reason in _NOT_NUMBERED:
            who = "the hello" if ended.reason == HELLO else "an operator"
            detail = f"transaction {context[0]} was ended by {who} before its commit came"
            self._quarantine(received, Reason.ENDED, detail)
            self._tell_ended(received, context, ended)
            return
        if not self.open.lists.commit(context):
            self.counts["unknown_commits"] += 1
            self.events.append((received, ControlOutcome.UNKNOWN))
            return
        self.events.append((received, ControlOutcome.TAKEN))
        self.roll_up(self.open.lists.lists_of(context))

    def _abort(self, received: ReceivedRecord, context: Context) -> None:
        if context not in self.open.lists.members or context in self.open.lists.committed:
            self.counts["unknown_aborts"] += 1
            self.events.append((received, ControlOutcome.UNKNOWN))
            return
        self.events.append((received, ControlOutcome.TAKEN))
        self.end(context, "aborted")

    def end(self, context: Context, reason: str) -> None:
        """Take a transaction out of the lists and keep the memory of its CSNs and rows."""
        keys = self.lists_behind(context[1])
        if context in self.open.lists.members:
            keys |= self.open.lists.lists_of(context)
        gone = [self.open.changes.pop(csn) for csn in self.open.lists.remove(context)]
        evicted = self.open.evicted.pop(context, None)
        on_disk = evicted is not None and evicted.absent > 0
        rows = () if on_disk else tuple(dict.fromkeys(a.change.row for a in gone))
        self.open.ended[context] = EndedTransaction(reason, rows, on_disk)
        self.known.end(context, gone)
        self.ended.append((context, reason, tuple(gone)))
        self.roll_up(keys)

    def lists_behind(self, rid: int) -> set[ListKey]:
        """The lists that a filled opno of this replica may free."""
        return {key for key in self.open.lists.by_list if key[1] == rid}

    def roll_up(self, keys: AbstractSet[ListKey]) -> None:
        """Move what nothing holds back any more from the lists to the eligible."""
        lists = self.open.lists
        while going := lists.eligible(keys, self._no_hole_below):
            keys = set[ListKey]().union(*(lists.lists_of(context) for context in going))
            for context in going:
                members = lists.members[context]
                transaction = tuple(self.open.changes.pop(csn) for csn in lists.csns_of(context))
                for arrived in transaction:
                    self._pass(arrived, members[arrived.change.csn])
                lists.remove(context)
                self._make_eligible(context, transaction)

    def _make_eligible(self, context: Context, transaction: Transaction) -> None:
        evicted = self.open.evicted.pop(context, None)
        if evicted is None:
            self.eligible.append(transaction)
            return
        largest = max((one.change.opno or 0 for one in transaction), default=0)
        self.count(context[1], largest or None, evicted.absent)
        before = self.state.open.changes
        fresh = tuple(arrived for arrived in transaction if arrived.change.csn not in before)
        self.eligible_on_disk.append(EligibleOnDisk(context, fresh))

    def want(self, context: Context) -> None:
        """Ask for the facts of a transaction of which some are on disk only."""
        evicted = self.open.evicted.get(context)
        if evicted is not None and evicted.absent:
            self.wanted.add(context)

    def _pass(self, arrived: Arrived, key: ListKey) -> None:
        csn, rid = arrived.change.csn, key[1]
        self.known.make_eligible(csn, rid, arrived.content)
        self.spans.extend(key, csn, csn)
        self.count(rid, arrived.change.opno)

    def count(self, rid: int, opno: int | None, changes: int = 1) -> None:
        """Count further eligible changes of an origin in the hub's row; `opno`: of the last."""
        self.numbers[rid] = counted(self.numbers.get(rid, 0), opno, changes)

    def take_own(
        self, arrived: Arrived, released: str | None = None, stands_at: int | None = None
    ) -> None:
        """Take a change that the hub itself makes; its CSN is above all of the hub's.

        `released`: of a change that an operator released, the CSN that it had; it is believed.
        `stands_at`: the rid of the replica that has the row so already; None: where it was written.
        """
        if released is not None:
            self.believed.accept(released)
            stands_at = rid_of(released)
        if stands_at is not None:
            self.standing[arrived.change.csn] = stands_at
        self.take_own_transaction((arrived,))

    def take_own_transaction(self, transaction: Transaction) -> None:
        """Take changes that the hub itself makes and that go together; in CSN order, as above."""
        self.eligible.append(transaction)
        for arrived in transaction:
            self._pass(arrived, self._list_of(arrived.change))

    def is_plain_from(
        self, rid: int, csn: str, opno: int | None, last_csn: str | None = None
    ) -> bool:
        """Return whether a run of whole transactions may start with this change, in any data set.

        last_csn: where the run ends, None: anywhere above; no CSN in between may be known already
        as one that was ended or quarantined, for then its content decides.
        """
        quiet = self.open.lists.is_quiet(rid) and self.opnos[rid].is_next(opno)
        return quiet and self.known.is_clear(rid, csn, last_csn)

    def _no_hole_below(self, context: Context) -> bool:
        return all(
            change.opno is None or change.opno <= self.opnos[change.rid].contiguous
            for change in (self.open.changes[c].change for c in self.open.lists.members[context])
        )

    def forget_ended(self) -> None:
        """Leave to `pending` the CSNs of ended transactions of which it has the others already."""
        for context, _, gone in self.ended:
            if self.open.ended[context].on_disk:
                for arrived in gone:
                    self.open.ended_csns.pop(arrived.change.csn, None)
                csns = (arrived.change.csn for arrived in gone)
                rid = context[1]
                self.open.on_disk[rid] = max([self.open.on_disk.get(rid, ""), *csns])

    def _fill_opno(self, rid: int, opno: int | None) -> None:
        if opno is not None:
            self.opnos[rid].add(opno)

    # -- quarantine -------------------------------------------------------------------------

    def _refuse_invalid(self, received: ReceivedRecord, reason: Reason) -> None:
        """Quarantine what validation found; a repeat of it is a duplicate, its opno is filled.

        Where its CSN is none of its replica's, the record is no evidence of that CSN. What it wrote
        stays at its writer (Reason.is_uncarried), and its transaction goes with it. Where its row
        can be named, it is kept under the row's own name, by which whatever sets it right is found.
        """
        change = received.record if isinstance(received.record, Change) else None
        content = received.content if change and is_csn_of(change.csn, received.rid) else None
        if change is not None and content is not None:
            if content in self.known.contents(change.csn):
                self._repeated(received, change, content)
                self._end_transaction_of(received, change, reason)
                return
            self.known.quarantine(change.csn, content)
            self.believed.check(received, change.csn)
        if change is not None:
            self._fill_opno(received.rid, change.opno)
            row = row_of(change, self.topology.tables)
            key = change.key if row is None else row[1]
            received = replace(received, record=change._replace(key=key))
        self._quarantine(received, reason, received.detail, content)
        if change is not None:
            self._end_transaction_of(received, change, reason)
        self.roll_up(self.lists_behind(received.rid))

    def _end_transaction_of(self, received: ReceivedRecord, change: Change, reason: Reason) -> None:
        """Quarantine the transaction of an invalid change, if its session is in force.

        What an older agent published, its successor publishes again.
        """
        session = self.replicas[received.rid].session
        if session is None or session.id != received.session or not reason.is_uncarried:
            return
        if change.prim_csn is None or not is_csn_of(change.prim_csn, received.rid):
            return
        context = (change.prim_csn, received.rid)
        ended = self.open.ended.get(context)
        if ended is not None:
            self._tell_ended(received, context, ended)
        else:
            self._take_along(received, context, reason)

    def _quarantine(
        self, received: ReceivedRecord, reason: Reason, detail: str, content: str | None = None
    ) -> None:
        seen = self._mre(received) if reason is Reason.COLUMN else None
        self.quarantined.append(quarantined_record(received, reason, detail, content, seen))

    def _mre(self, received: ReceivedRecord) -> int | None:
        """The MRE of a change that is not taken now; None: the record is no change."""
        match received.record:
            case Change() as change if self.topology.sees(received.rid, change.table):
                return mre(self.replicas[received.rid].sessions, change.epoch)
            case record:
                return 0 if isinstance(record, Change) else None

    def _repair(self, received: ReceivedRecord, row: RowKey, cause: Reason) -> None:
        """Take a quarantined change back at its origin; what is uncarried stays there."""
        if not cause.is_uncarried:
            self.repair_behind(received.rid, row, received.offset, cause)

    def repair_behind(self, rid: int, row: RowKey, offset: int, cause: str) -> None:
        """Repair a row; one of a table that is not configured any more is sent to nobody."""
        if row[0] in self.topology.tables:
            self.repairs.append(Repair(rid, row, offset, cause))

    def _count_duplicate(self, received: ReceivedRecord) -> None:
        self.counts[DUPLICATES] += 1
        self.counts[ReplicaKey(DUPLICATES, received.rid)] += 1
        self.events.append((received, ControlOutcome.DUPLICATE))


HELLO = "hello"
OPERATOR = "operator"
_NOT_NUMBERED = {HELLO, OPERATOR}
"""Why a transaction ended of which its replica may still say more: that is kept once."""

_REASONS = {
    reason.value
    for reason in Reason
    if reason.is_uncarried or reason in {Reason.LATE, Reason.REUSED, Reason.PURGED, Reason.ENDED}
}
"""Why a transaction ended that one of its changes took along: the others have that reason too."""
