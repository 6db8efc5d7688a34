"""From records in topic order to eligible transactions: sessions, and what each record means.

The changes themselves are taken by TransactionIntake.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from streaming.core.counts import tallies
from streaming.core.counts.counter_keys import OLD_GENERATION, ReplicaKey
from streaming.core.delivery.positions import (
    BelievedPosition,
    OldGeneration,
    OtherAgreement,
    PositionGap,
)
from streaming.core.intake.refused_rows import RefusedRows, refused_row
from streaming.core.intake.sessions import (
    after_applied,
    after_hello,
    answer_to,
    not_in_force,
    reflected_elsewhere,
    served_elsewhere,
    with_floor,
    with_session,
)
from streaming.core.intake.stopped import says_nothing_of_rows, starts_again, with_last_session
from streaming.core.intake.transactions import HELLO, TransactionIntake
from streaming.core.model.change import Change
from streaming.core.model.csn import rid_of
from streaming.core.model.refusal import Refusal
from streaming.core.model.row import Floor
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus, Stop, StopReason
from streaming.core.model.table import OnRefused
from streaming.core.records.arrival import RETRY, ControlOutcome
from streaming.core.records.members import RecordFault
from streaming.core.records.record import (
    Abort,
    Applied,
    Commit,
    Goodbye,
    Heartbeat,
    Hello,
    LocalWrites,
    PublishedSchema,
    Reason,
    ReceivedRecord,
    Record,
    Refused,
    Snapshot,
)
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.held_back import HeldBack
from streaming.core.state.hub_state import FIRST_GENERATION
from streaming.core.state.pending import ListKey
from streaming.core.state.reflection import reflect
from streaming.core.state.replica_state import AgentEnd, ReplicaState
from streaming.core.state.topology import Topology
from streaming.core.tracking.ranges import unapplied


@dataclass(slots=True)
class Intake(TransactionIntake):
    """One batch's working copy of the state; `take` every record of a topic in its order.

    `at_ms`: the hub's clock. `unread`: what follows a stop, by replica. `released`: the agreements
    of which an operator lets go what waits. `copying`: those of which he let a copy begin, now or
    before. `throttled`: those that have sent more than their bytes a second.
    """

    unread: dict[int, list[ReceivedRecord]] = field(default_factory=dict)
    hellos: int = 0
    at_ms: int = 0

    def __post_init__(self) -> None:
        """Work by what the agreements send; `configured` has the tables too that are paused."""
        self.configured, self.paused_tables = self.topology, dict(self.state.paused_tables)
        self.topology = self.configured.without(self.paused_tables)
        TransactionIntake.__post_init__(self)  # super() does not know a class with slots
        self.agreements = dict(self.state.agreements)
        self.copying = {name for name, one in self.state.held_back.items() if one.copies}
        self.refused = RefusedRows(self.state.refusals, self.at_ms)
        self.lacking = dict(self.state.lacking)

    agreements: dict[str, AgreementState] = field(init=False)
    released: set[str] = field(default_factory=set)
    copying: set[str] = field(default_factory=set)
    throttled: Collection[str] = ()
    configured: Topology = field(init=False)
    paused_tables: dict[str, frozenset[str]] = field(init=False)
    refused: RefusedRows = field(init=False)
    lacking: dict[int, frozenset[str]] = field(init=False)

    def take(self, received: ReceivedRecord) -> None:
        """Take one record; it must stand behind all that were taken from its topic."""
        replica = self.replicas[received.rid]
        if replica.is_stopped and not self._starts_again(received, replica):
            self.unread.setdefault(received.rid, []).append(received)
            return
        if received.time_ms > replica.seen_ms:
            replica = replace(replica, seen_ms=received.time_ms)
            self.replicas[received.rid] = replica
        if received.reason is not None:
            self._refuse_invalid(received, received.reason)
            return
        if not replica.is_elsewhere and self._is_of_old_generation(received.rid, received.record):
            self.counts[ReplicaKey(OLD_GENERATION, received.rid)] += 1
            self.events.append((received, ControlOutcome.OLD_GENERATION))
            return
        match received.record:
            case Hello() as hello:
                self._hello(received, hello, replica)
            case Goodbye() as goodbye:
                self._goodbye(received, goodbye, replica)
            case _ if replica.session is None or replica.session.id != received.session:
                self._quarantine(received, Reason.SESSION, not_in_force(received, replica.session))
            case record:
                self._record(received, record, replica)
                self._heard(received.rid)

    def _is_of_old_generation(self, rid: int, record: Record | None) -> bool:
        """Return whether the record answers what was sent before the hub's state was restored.

        A `refused` names no generation, but a hub that was restored has raised its hub epoch above
        all that was sent: what it has and did not send in this session was sent before.
        """
        match record:
            case Applied() as applied:
                return applied.generation < self.state.generation
            case Refused() as refused:
                is_unsent = refused.hub_epoch > self._largest_sent_to(rid)
                is_raised = self.state.generation > FIRST_GENERATION
                return is_raised and is_unsent and refused.hub_epoch <= self.state.hub_epoch
            case _:
                return False

    def _record(
        self, received: ReceivedRecord, record: Record | None, replica: ReplicaState
    ) -> None:
        """Take a record of the session in force."""
        match record:
            case Change() as change:
                self._change(received, change, replica)
            case Commit() as commit:
                self._commit(received, (commit.prim_csn, received.rid))
            case Abort() as abort:
                self._abort(received, (abort.prim_csn, received.rid))
            case Applied() as applied if replica.is_elsewhere:
                self.replicas[received.rid] = reflected_elsewhere(replica, applied)
                self.move(received.rid, lambda one: served_elsewhere(one, self.at_ms))
                self.events.append((received, ControlOutcome.TAKEN))
            case Applied() as applied:
                self._applied(received, applied, replica)
            case Heartbeat() as heartbeat:
                self.replicas[received.rid] = replace(
                    replica, epoch=heartbeat.epoch, unpublished=heartbeat.unpublished or 0
                )
                self.events.append((received, ControlOutcome.TAKEN))
            case Refused() if replica.is_elsewhere:
                self.events.append((received, ControlOutcome.ELSEWHERE))
            case Refused() as refused:
                self._refused(received, refused)
            case Snapshot() as part:
                self._snapshot(received, part, replica)
            case PublishedSchema() as schema:
                self._schema(received, schema)
            case LocalWrites():
                self.events.append((received, ControlOutcome.TAKEN))
            case Hello() | Goodbye() | None:
                self._quarantine(received, Reason.KIND, "an empty record")

    def take_run(
        self,
        key: ListKey,
        first_csn: str,
        last_csn: str,
        opno: int | None,
        time_ms: int,
        changes: int,
    ) -> None:
        """Take a run of whole transactions at once: `is_plain_from` held, and their CSNs rise.

        They are of one replica and one data set. Whole is a change without prim_csn, or the
        changes of a prim_csn, which is the first one's CSN, with their commit right behind. Each
        record is valid and of the session in force, each change has the next opno or none, and its
        CSN is known nowhere: each transaction would have become eligible with its last record.
        `opno`: of the last change; `changes`: how many there are.
        """
        rid = key[1]
        self.spans.extend(key, first_csn, last_csn)
        self.known.largest[rid] = last_csn
        self._heard(rid)
        replica = self.replicas[rid]
        self.replicas[rid] = replace(replica, seen_ms=max(replica.seen_ms, time_ms))
        self.count(rid, opno, changes)
        if opno is not None:
            self.opnos[rid].contiguous = opno

    # -- sessions ---------------------------------------------------------------------------

    def _hello(self, received: ReceivedRecord, hello: Hello, replica: ReplicaState) -> None:
        session_id = received.session or ""
        if session_id in replica.known_sessions:
            self._count_duplicate(received)
            return
        answer = self._answer_to(received, hello)
        if isinstance(answer, Stop):
            self._stop(received, answer)
            return
        is_old = isinstance(answer, OldGeneration | OtherAgreement)
        if isinstance(answer, PositionGap):
            self.move(received.rid, lambda one: replace(one, is_full=True))
        if is_old:
            hello = replace(hello, covers=0, ruv=NOTHING_KNOWN, reached=None)
        for context in self.open.lists.open_of(received.rid):
            self.end(context, HELLO)
        is_new = hello.reinit or replica.status is ReplicaStatus.RECOVERED
        if is_new:  # no session before judges what it writes next; its floors are of older changes
            replica = replace(replica, sessions=())
        agreement, hub_epoch = self.topology.agreement_of(received.rid), self.state.hub_epoch + 1
        greeted = with_session(replica, session_id, hello, agreement, hub_epoch)
        self.replicas[received.rid] = greeted
        if hello.lost or is_new or is_old:
            self._floor(received, "" if is_new else hello.own or "")
        if is_new or replica.is_stopped:
            self.opnos[received.rid].fill_holes()  # nobody else will: what filled them is given up
            self.roll_up(self.lists_behind(received.rid))
        if greeted.is_elsewhere:
            self.move(received.rid, lambda one: served_elsewhere(one, self.at_ms))
        else:
            self._answer(received, hello)
        self.hellos += 1
        self.events.append((received, ControlOutcome.TAKEN))

    def _answer(self, received: ReceivedRecord, hello: Hello) -> None:
        """Send a replica what it lacks from here on, what it refused included."""
        if not hello.reinit:
            self._scan_again(received.rid, max(hello.covers, hello.reached or 0))
        self.move(received.rid, lambda one: after_hello(one, received, hello, self.at_ms))
        self.refused.after_hello(received.rid, self._applied_to(received.rid, hello))
        self._send_refused_in_resync(received.rid)

    def _scan_again(self, rid: int, reached: int) -> None:
        """Order a scan of what a database lacks of ranges: they are in no log, so none is repeated.

        `reached`: the hub epoch that the database applied last; one that was restored may have
        been sent ranges behind it.
        """
        lacking = unapplied(self.state.ranges, rid, reached)
        scans = {table for table in lacking if self.topology.sees(rid, table)}
        if scans:
            self.move(rid, lambda one: replace(one, scans=one.scans | scans))

    def _goodbye(self, received: ReceivedRecord, goodbye: Goodbye, replica: ReplicaState) -> None:
        """Note that the agent of the session in force has ended; another session's says nothing.

        It brings no consumer back that was away: the hello of the next session does.
        """
        if replica.session is None or replica.session.id != received.session:
            self.events.append((received, ControlOutcome.UNKNOWN))
            return
        if replica.ended is not None:
            self._count_duplicate(received)
            return
        ended = AgentEnd(received.time_ms, goodbye.unpublished)
        self.replicas[received.rid] = replace(replica, epoch=goodbye.epoch, ended=ended)
        self.events.append((received, ControlOutcome.TAKEN))

    def _answer_to(
        self, received: ReceivedRecord, hello: Hello
    ) -> BelievedPosition | PositionGap | Stop:
        dataset = self.topology.dataset_at(received.rid)
        ruv = self.ruvs.get(dataset) or self.state.ruv_of(dataset)
        published = self._published_to(received.rid)
        agreement = self.topology.agreement_of(received.rid)
        return answer_to(self.state, ruv, dataset, received.rid, hello, published, agreement)

    def _applied_to(self, rid: int, hello: Hello) -> int:
        """The hub epoch up to which the replica need not be sent anything again after a hello.

        A resync that went on goes on too when its agreement is stopped at a refused row.
        """
        resyncs = (self.agreements[name].resync for name in self.agreements_to(rid))
        goes_on = any(one is not None and one.end is not None for one in resyncs)
        return max(hello.covers, hello.reached or 0) if goes_on else hello.covers

    def _floor(self, received: ReceivedRecord, own: str) -> None:
        """What the replica writes from here on, it writes without what it lost: beyond `own`.

        What input was lost with may have been a new start, so a replica that starts anew behind
        that counts as having nothing of its own, whatever its hello says.
        """
        known = [csn for csn in self.open.changes if rid_of(csn) == received.rid]
        upto = max([*known, self.known.largest.get(received.rid, "")])
        floor = Floor(self.state.hub_epoch + 1, received.offset, own, upto)
        self.replicas[received.rid] = with_floor(self.replicas[received.rid], floor)

    def _applied(self, received: ReceivedRecord, applied: Applied, replica: ReplicaState) -> None:
        session = replica.session
        sent, published = self._sent_to(received.rid), self._published_to(received.rid)
        is_current = applied.generation == self.state.generation
        if (applied.generation, applied.covers) > (self.state.generation, published):
            self._stop(received, Stop(StopReason.HUB_BEHIND))
            return
        if session is None or not is_current or applied.covers > sent:
            detail = (
                f"applied covers {applied.covers} of generation {applied.generation};"
                f" this session was sent {sent} of generation {self.state.generation}"
            )
            self._quarantine(received, Reason.SESSION, detail)
            return
        new = reflect(session, applied.epoch, applied.covers, self.topology.reflections)
        self.replicas[received.rid] = replace(
            replica,
            sessions=(*replica.sessions[:-1], new),
            epoch=max(replica.epoch, applied.epoch + 1),
        )
        self.move(received.rid, lambda one: after_applied(one, received, applied))
        self.refused.reflect(received.rid, applied.covers)
        self.events.append((received, ControlOutcome.TAKEN))

    def _snapshot(self, received: ReceivedRecord, part: Snapshot, replica: ReplicaState) -> None:
        """Take the begin of a table of the snapshot in force, or the snapshot's end."""
        if part.id != replica.snapshot:
            self.counts["unknown_snapshots"] += 1
            self.events.append((received, ControlOutcome.UNKNOWN))
            return
        if part.phase == "end":
            self.replicas[received.rid] = replace(replica, snapshot=None)
            self.move(received.rid, lambda one: one.snapshot_ended(self.at_ms))
            self._send_refused_in_resync(received.rid)
        self.events.append((received, ControlOutcome.TAKEN))

    def _schema(self, received: ReceivedRecord, schema: PublishedSchema) -> None:
        """Note which columns the database lacks: what it refused for one of them waits for it."""
        self.lacking.pop(received.rid, None)
        if schema.lacking:
            self.lacking[received.rid] = frozenset(schema.lacking)
        self.events.append((received, ControlOutcome.TAKEN))

    def _refused(self, received: ReceivedRecord, refused: Refused) -> None:
        """Remember a row that the database of its replica did not take (RefusedRows)."""
        tables = self.topology.tables
        row = refused_row(refused, self._largest_sent_to(received.rid), tables)
        if isinstance(row, RecordFault):
            self._quarantine(received, row.reason, row.detail)
        elif self.refused.refuse(received, refused, row):
            self.counts["refused"] += 1
            is_new = self.refused.of(received.rid)[row].attempts == 1
            self.counts[tallies.refused_row(received.rid, row[0])] += is_new
            if tables[row[0]].on_refused is OnRefused.STOP:
                self.move(received.rid, lambda one: one if one.is_stopped else one.refused(row[0]))
            self.events.append((received, ControlOutcome.TAKEN))
        else:
            self._count_duplicate(received)

    def refresh_refused(self, refusals: Iterable[Refusal]) -> None:
        """Refresh refused rows; what waits and was written behind the refusal has not seen them."""
        for one in refusals:
            if self.topology.agreement_of(one.rid) is not None:
                self.repair_behind(one.rid, one.row, one.offset, RETRY)

    # -- stops ------------------------------------------------------------------------------

    def _stop(self, received: ReceivedRecord, stop: Stop) -> None:
        """Stop reading this replica before this record, and sending to it."""
        replica = self.replicas[received.rid]
        self.replicas[received.rid] = replica.stopped(stop, received.offset)
        self.move(received.rid, lambda one: one.stopped(stop, received.session))
        self.events.append((received, ControlOutcome.STOPPED))
        self.unread[received.rid] = [received]

    def _starts_again(self, received: ReceivedRecord, replica: ReplicaState) -> bool:
        """Go on with a stopped replica whose hello starts it again."""
        hello = starts_again(received, replica)
        if hello is None or isinstance(self._answer_to(received, hello), Stop):
            return False
        self._give_up_unread(received.rid)
        return True

    def leave_unread(self, limit: int) -> None:
        """End a batch whose records were all taken: what follows a stop stays unread.

        From `limit` records on it goes to quarantine, so that a later hello is found at all.
        """
        for rid, unread in list(self.unread.items()):
            name = self.topology.agreement_of(rid)
            if name is not None:
                self.agreements[name] = with_last_session(self.agreements[name], unread)
            if len(unread) >= limit:
                self._give_up_unread(rid)
                behind = unread[-1].offset + 1
                self.replicas[rid] = replace(self.replicas[rid], stop_offset=behind)

    def _give_up_unread(self, rid: int) -> None:
        """Quarantine what was left unread behind a stop; it takes no opno, as it may come again.

        Transactions that began there are ended: the rest of them may stand behind the hello.
        """
        detail = f"its replica was stopped before it was read: {self.replicas[rid].status_text}"
        for received in self.unread.pop(rid, ()):
            change = received.record
            if isinstance(change, Change) and change.prim_csn is not None:
                context = (change.prim_csn, rid)
                if context not in self.open.ended and context not in self.open.lists.committed:
                    self.end(context, HELLO)
            if says_nothing_of_rows(received):
                self.events.append((received, ControlOutcome.GIVEN_UP))
                continue
            reason = received.reason or Reason.SESSION
            self._quarantine(received, reason, received.detail or detail)

    # -- agreements -------------------------------------------------------------------------

    def _heard(self, rid: int) -> None:
        """Begin the resync of a consumer that was away: its replica says something."""
        for name in self.agreements_to(rid):
            one = self.agreements[name]
            if one.comes_back(self.at_ms, self.topology.ack_timeout_ms):
                self.begin_resync(name)

    def held_back(self, name: str) -> HeldBack | None:
        """What an agreement is not sent yet, with what this batch releases of it."""
        held = self.state.held_back.get(name)
        if name not in self.released:
            return held
        known = held or HeldBack(self.agreements[name].scanned, 0)
        return replace(known, released=self.state.hub_epoch)

    def pause_tables(self, name: str, tables: frozenset[str]) -> None:
        """Have an agreement send nothing of these tables, and no more than these, from here on."""
        self.paused_tables.pop(name, None)
        if tables:
            self.paused_tables[name] = tables
        self.topology = self.configured.without(self.paused_tables)

    def begin_resync(self, name: str) -> None:
        """Begin a resync from what the consumer acknowledged, with the rows that it refused.

        One that tells a snapshot begins it when that ends.
        """
        one, replica = self.agreements[name], self.replicas[self.agreements[name].consumer]
        if replica.is_elsewhere:
            self.agreements[name] = one.elsewhere(self.at_ms)
            return
        if replica.snapshot is not None:
            self.agreements[name] = one.snapshot_begun()
            return
        self.agreements[name] = one.resyncing(one.acked, self.at_ms)
        self._send_refused_in_resync(one.consumer)

    def _send_refused_in_resync(self, rid: int) -> None:
        """Refresh what the replica refused in the batch that begins its resync: pages bring it."""
        if any(self.agreements[name].begins_resync for name in self.agreements_to(rid)):
            self.refresh_refused(self.refused.of(rid).values())

    def _published_to(self, rid: int) -> int:
        """The largest covers that was ever committed to be sent to this replica.

        Of one without an agreement nobody knows it, but the hub has nothing above its own epoch.
        """
        published = (self.agreements[name].largest_published for name in self.agreements_to(rid))
        return max(published, default=self.state.hub_epoch)

    def _sent_to(self, rid: int) -> int:
        """The covers that this replica was sent in the session in force."""
        return max((self.agreements[n].sent_covers for n in self.agreements_to(rid)), default=0)

    def _largest_sent_to(self, rid: int) -> int:
        """The largest hub epoch of what this replica may have been sent in its session."""
        return max((self.agreements[n].largest_sent for n in self.agreements_to(rid)), default=0)

    def agreements_to(self, rid: int) -> list[str]:
        """The agreement whose consumer this replica is; without one, those that are retired."""
        name = self.topology.agreement_of(rid)
        if name is not None:
            return [name]
        return [n for n, one in self.agreements.items() if one.consumer == rid and one.is_retired]

    def move(self, rid: int, step: Callable[[AgreementState], AgreementState]) -> None:
        """Take a step with the agreement of this consumer.

        One that is retired stays so; one that stopped at a refused row, unless it stops otherwise.
        """
        for name in self.agreements_to(rid):
            before = self.agreements[name]
            after = step(before)
            if before.is_retired:
                after = after.retired()
            elif before.status is AgreementStatus.REFUSED and not after.is_stopped:
                after = after.refused(before.detail)
            self.agreements[name] = after
