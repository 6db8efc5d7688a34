"""What the hub knows between two batches, rows apart."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from streaming.core.intake.pending import Context, PendingLists
from streaming.core.intake.reflection import Session
from streaming.core.model.change import RowKey
from streaming.core.model.refusal import Refusals
from streaming.core.model.row import Arrived, Floor
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv, largest_of
from streaming.core.model.statuses import (
    FOR_GOOD,
    AgreementStatus,
    AwayReason,
    ReplicaStatus,
    Stop,
    parse_status,
    status_text,
)
from streaming.core.model.truncation import Truncations
from streaming.core.tracking.held import CoveredPosition
from streaming.core.tracking.ranges import KeyRange, RangeRealign
from streaming.core.tracking.resync import Resync


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A replica as its own topic shows it; the last of `sessions` is in force.

    `detail`: what the status does not tell, or nothing.
    `opno`: every ordinal up to here was seen; `opno_above`: those seen beyond the first hole.
    `stop_offset`: where reading stopped, for a replica that is stopped. `last_conflict_epoch`: the
    hub epoch of its last conflict; `last_stable_epoch`: what it had reflected when none was open.
    `snapshot`: the id of the snapshot that it is telling.
    """

    rid: int
    status: ReplicaStatus = ReplicaStatus.SILENT
    detail: str = ""
    sessions: tuple[Session, ...] = ()
    known_sessions: tuple[str, ...] = ()
    epoch: int = 0
    seen_ms: int = 0
    opno: int = 0
    opno_above: frozenset[int] = frozenset()
    floors: tuple[Floor, ...] = ()
    stop_offset: int | None = None
    last_conflict_epoch: int = 0
    last_stable_epoch: int = 0
    snapshot: str | None = None

    @property
    def status_text(self) -> str:
        """The status with its detail, as it is stored and shown."""
        return status_text(self.status, self.detail)

    @property
    def is_stopped(self) -> bool:
        """Return whether nothing more is read from this replica."""
        return self.status.is_stopped

    @property
    def missing_opno(self) -> int | None:
        """The first hole in its ordinals; None: there is none."""
        has_hole = any(opno > self.opno for opno in self.opno_above)
        return self.opno + 1 if has_hole else None

    @property
    def is_retired(self) -> bool:
        """Return whether it is not configured any more."""
        return self.status is ReplicaStatus.RETIRED

    def stopped(self, stop: Stop, offset: int) -> "ReplicaState":
        """The replica when reading its topic has stopped before the record at this offset."""
        status = ReplicaStatus(stop.reason.value)
        return replace(self, status=status, detail=stop.detail, stop_offset=offset)

    @property
    def is_retired_for_good(self) -> bool:
        """Return whether an operator has retired it."""
        return self.is_retired and self.detail == FOR_GOOD

    def retired_for_good(self, offset: int) -> "ReplicaState":
        """The replica when an operator retires it, before the record at this offset."""
        offset = offset if self.stop_offset is None else self.stop_offset
        status = ReplicaStatus.RETIRED
        return replace(self, status=status, detail=FOR_GOOD, stop_offset=offset, floors=())

    def retired(self) -> "ReplicaState":
        """The replica when it is not configured any more; the detail keeps why it was stopped."""
        if self.is_retired:
            return self
        detail = self.status_text if self.is_stopped else ""
        return replace(self, status=ReplicaStatus.RETIRED, detail=detail)

    def revived(self) -> "ReplicaState":
        """The replica when it is configured: one that was not goes on as it was."""
        if not self.is_retired or self.is_retired_for_good:
            return self
        if self.detail:
            status, detail = parse_status(ReplicaStatus, self.detail)
            return replace(self, status=status, detail=detail)
        return replace(self, status=ReplicaStatus.LIVE if self.sessions else ReplicaStatus.SILENT)

    @property
    def session(self) -> Session | None:
        """The session in force, or None before the first hello."""
        return self.sessions[-1] if self.sessions else None

    @property
    def mre(self) -> int:
        """The max replicated epoch: what it reflected in the session in force; 0 without one."""
        return self.session.mre if self.session else 0

    @property
    def handles_conflict(self) -> bool:
        """Return whether conflict handling is in progress: its last conflict is not reflected."""
        return self.last_conflict_epoch > self.mre


@dataclass(frozen=True, slots=True)
class SendRange:
    """What one batch publishes to one agreement: the hub epochs in (after, to].

    `prev`: the hub epoch that its first record names as the one sent before it. `known`: the
    changes that the consumer has already, which are left out. `position`: what the consumer has
    once it has applied them. `ranges`: the ranges of keys that a page of this very batch sends.
    """

    after: int
    to: int
    prev: int
    known: Ruv
    position: CoveredPosition
    ranges: tuple[KeyRange, ...] = ()

    @property
    def is_page(self) -> bool:
        """Return whether it holds several hub epochs, of which the last of each row is sent."""
        return self.to - self.after > 1


@dataclass(frozen=True, slots=True)
class AgreementState:
    """An agreement's status and its two positions, which last from batch to batch.

    sent: the estimate, raised at sending. acked: the consumer's own last word. `scanned`: up to
    this hub epoch all was sent, or is nothing for the consumer, or is brought by a resync.
    `published`: the largest covers that was ever committed to be sent, in any session. `behind_ms`:
    since when an acknowledgement is waited for, 0: it is not. `away_ms`: when it
    last went away. `resync`: until its last page is acknowledged. `is_full`: the next resync copies
    everything; `scans`: it scans these tables.
    """

    name: str
    consumer: int
    status: AgreementStatus = AgreementStatus.WAITING_FOR_HELLO
    detail: str = ""
    session: str | None = None
    own: str | None = None
    sent_epoch: int = 0
    sent_covers: int = 0
    sent_ruv: Ruv = NOTHING_KNOWN
    scanned: int = 0
    sent_ms: int = 0
    acked_covers: int = 0
    acked_ruv: Ruv = NOTHING_KNOWN
    acked_ms: int = 0
    published: int = 0
    behind_ms: int = 0
    away_ms: int = 0
    resync: Resync | None = None
    is_full: bool = False
    scans: frozenset[str] = frozenset()

    @property
    def status_text(self) -> str:
        """The status with its detail, as it is stored and shown."""
        return status_text(self.status, self.detail)

    @property
    def is_stopped(self) -> bool:
        """Return whether nothing more is sent to its consumer."""
        return self.status.is_stopped

    @property
    def is_retired(self) -> bool:
        """Return whether it is not configured any more."""
        return self.status is AgreementStatus.RETIRED

    def stopped(self, stop: Stop, session: str | None = None) -> "AgreementState":
        """The agreement when its consumer is stopped; `session`: the one that is told so."""
        status = AgreementStatus(stop.reason.value)
        told = session or self.session
        return replace(self, status=status, detail=stop.detail, session=told)

    @property
    def goes_on_with_resync(self) -> bool:
        """Return whether a resync is under way that began with an earlier batch."""
        return self.status is AgreementStatus.RESYNC and not self.begins_resync

    @property
    def largest_published(self) -> int:
        """The largest covers that was ever committed to be sent to its consumer."""
        return max(self.published, self.sent_covers)

    @property
    def begins_resync(self) -> bool:
        """Return whether a resync begins with this batch."""
        return self.resync is not None and self.resync.end is None

    @property
    def is_sent_to(self) -> bool:
        """Return whether anything is sent to its consumer."""
        return self.session is not None and self.status.is_sent_to

    def is_held(self, hub_epoch: int) -> bool:
        """Return whether its consumer's position stays held, once it has all up to this hub epoch.

        It moves with the last page of a resync.
        """
        return self.resync is not None and not self.resync.is_sent(hub_epoch)

    def takes_page(self, before: "HubState") -> bool:
        """Return whether a page that was planned for it before this batch is still to be sent.

        `before`: the state before the batch; only a resync that is the same still is.
        """
        known = before.agreements.get(self.name)
        is_same = (
            known is not None and known.resync is not None and known.resync.is_same(self.resync)
        )
        return self.goes_on_with_resync and is_same and self.scanned == before.hub_epoch

    def begun(self, hub_epoch: int) -> "AgreementState":
        """The agreement with the end of a resync that this batch begins, of this hub epoch."""
        if self.resync is None or self.resync.end is not None:
            return self
        return replace(self, resync=replace(self.resync, end=hub_epoch), scanned=hub_epoch)

    @property
    def awaits_acknowledgement(self) -> bool:
        """Return whether its consumer has not acknowledged something that it was sent."""
        pages = self.resync is not None and self.resync.unacked
        return self.is_sent_to and bool(pages or self.acked_covers < self.sent_covers)

    def is_overdue(self, clock_ms: int, ack_timeout_ms: int) -> bool:
        """Return whether an acknowledgement has been waited for so long."""
        since_ms = self.behind_ms or self.sent_ms
        return self.awaits_acknowledgement and clock_ms - since_ms >= ack_timeout_ms

    def unless_silent(self, clock_ms: int, ack_timeout_ms: int) -> "AgreementState":
        """The agreement after the records of a batch, away if nothing was acknowledged for so long.

        The wait begins with the first batch behind the one that sent something: the clock of that
        one is of before it was published, which may have taken longer than the timeout.
        """
        if not self.awaits_acknowledgement:
            return replace(self, behind_ms=0)
        if not self.behind_ms:
            return replace(self, behind_ms=clock_ms)
        is_silent = self.is_overdue(clock_ms, ack_timeout_ms)
        return self.away(AwayReason.SILENT, clock_ms) if is_silent else self

    def comes_back(self, clock_ms: int, again_ms: int) -> bool:
        """Return whether a record of its consumer brings it back, which was away.

        One whose topic refused something is not tried again before `again_ms`.
        """
        if self.status is not AgreementStatus.CHANGE_TRACKING or self.detail == AwayReason.PAUSED:
            return False
        is_refused = self.detail == AwayReason.UNWRITABLE
        return not is_refused or clock_ms - self.away_ms >= again_ms

    def away(self, why: AwayReason, at_ms: int) -> "AgreementState":
        """The agreement when its consumer counts as away: what it lacks adds up from the acked."""
        gone = replace(self, status=AgreementStatus.CHANGE_TRACKING, detail=why.value)
        return replace(gone, behind_ms=0, away_ms=at_ms, resync=None)

    def resyncing(self, held: CoveredPosition, at_ms: int) -> "AgreementState":
        """The agreement when a resync begins with this batch, from what its consumer has."""
        new = Resync(None, held, at_ms)
        return replace(self, status=AgreementStatus.RESYNC, detail="", behind_ms=0, resync=new)

    def resynced(self) -> "AgreementState":
        """The agreement when its consumer has acknowledged the last page of a resync."""
        return replace(self, resync=None, is_full=False, scans=frozenset())

    def snapshot_begun(self) -> "AgreementState":
        """The agreement while its consumer tells a snapshot: what it is to be sent waits."""
        status = AgreementStatus.SNAPSHOT
        return replace(self, status=status, detail="", behind_ms=0, resync=None)

    def snapshot_ended(self, at_ms: int) -> "AgreementState":
        """The agreement when its consumer's snapshot ended: what was ordered meanwhile begins."""
        if self.status is not AgreementStatus.SNAPSHOT:
            return self
        held = CoveredPosition(self.acked_covers, self.acked_ruv)
        if self.is_full or self.scans:
            return self.resyncing(held, at_ms)
        return self.sent_again()

    def sent_again(self) -> "AgreementState":
        """The agreement when sending goes on behind what its consumer has acknowledged.

        `sent_covers` stays, for the consumer may have applied all that was sent. It skips what it
        has, by hub epoch.
        """
        return replace(
            self,
            status=AgreementStatus.CATCHING_UP,
            sent_epoch=self.acked_covers,
            sent_ruv=self.acked_ruv,
            scanned=self.acked_covers,
            sent_ms=0,
        )

    def rescanning(self, table: str, at_ms: int) -> "AgreementState":
        """The agreement when its consumer must get a table back, now or with its next resync."""
        marked = replace(self, scans=self.scans | {table})
        held = CoveredPosition(self.acked_covers, self.acked_ruv)
        return marked.resyncing(held, at_ms) if self.is_sent_to else marked

    def refused(self, table: str) -> "AgreementState":
        """The agreement when its consumer refused a row of a table at which that stops it."""
        return replace(self, status=AgreementStatus.REFUSED, detail=table)

    def resumed(self) -> "AgreementState":
        """The agreement when it is sent to again, from where it was."""
        if self.session is None:
            return replace(self, status=AgreementStatus.WAITING_FOR_HELLO, detail="")
        is_held = self.is_held(self.scanned)
        to_send = AgreementStatus.RESYNC if is_held else AgreementStatus.CATCHING_UP
        return replace(self, status=to_send, detail="")

    def retired_for_good(self) -> "AgreementState":
        """The agreement when an operator retires its consumer."""
        return replace(self, status=AgreementStatus.RETIRED, detail=FOR_GOOD)

    def retired(self) -> "AgreementState":
        """The agreement when it is not configured any more; the detail keeps why it was stopped."""
        if self.is_retired:
            return self
        detail = self.status_text if self.status.keeps_place else ""
        return replace(self, status=AgreementStatus.RETIRED, detail=detail)

    def revived(self) -> "AgreementState":
        """The agreement when it is configured: one that was not goes on where it was."""
        if not self.is_retired or self.detail == FOR_GOOD:
            return self
        if self.detail:
            status, detail = parse_status(AgreementStatus, self.detail)
            return replace(self, status=status, detail=detail)
        return self.resumed()


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """A transaction that never will be judged: why, and the rows that it was known to write.

    reason: aborted (by its replica) · hello (its replica started anew; no commit seen since) ·
    operator (by hand, its rows refreshed at the origin; nothing more of it seen since) ·
    ended, late, reused (in quarantine, its rows refreshed at the origin).
    on_disk: its rows and CSNs are not in memory; table `pending` has them.
    """

    reason: str
    rows: tuple[RowKey, ...]
    on_disk: bool = False


@dataclass(frozen=True, slots=True)
class Evicted:
    """A transaction of which the images, and the facts of most changes, are only in `pending`.

    `absent`: how many of its changes are not in memory. `merged`: it stands for several whole
    transactions of one list that wait one behind the other, and has the name of the last one.
    """

    absent: int
    merged: bool = False


@dataclass(slots=True)
class OpenTransactions:
    """Everything that is announced and not judged, and the memory of what never will be.

    `evicted`: what of it is on disk (core/intake/eviction.py). `on_disk`: rid -> a CSN up to which
    `pending` may know CSNs that memory does not.
    """

    lists: PendingLists = field(default_factory=PendingLists)
    changes: dict[str, Arrived] = field(default_factory=dict)
    ended: dict[Context, EndedTransaction] = field(default_factory=dict)
    ended_csns: dict[str, str] = field(default_factory=dict)
    quarantined: dict[str, tuple[str, ...]] = field(default_factory=dict)
    evicted: dict[Context, Evicted] = field(default_factory=dict)
    on_disk: dict[int, str] = field(default_factory=dict)

    def forget(self, ruvs: Iterable[Ruv]) -> None:
        """Drop the memory of quarantined CSNs that a RUV covers: a repeat is looked up."""
        if self.quarantined:
            known = tuple(ruvs)
            self.quarantined = {
                csn: contents
                for csn, contents in self.quarantined.items()
                if not any(ruv.covers(csn) for ruv in known)
            }

    def copy(self) -> "OpenTransactions":
        """An independent copy; the values themselves never change."""
        return OpenTransactions(
            self.lists.copy(),
            dict(self.changes),
            dict(self.ended),
            dict(self.ended_csns),
            dict(self.quarantined),
            dict(self.evicted),
            dict(self.on_disk),
        )


@dataclass(frozen=True, slots=True)
class HubState:
    """The hub after a committed batch; `open` is copied before a batch works on it.

    `ruvs` and `purge_ruvs` are by data set. `to_send`: by agreement, what this very batch
    publishes; a hub that starts publishes it again. The tables of an agreement are configuration
    and stand in `Topology`, not here. `ranges`: the ranges of keys that were sent as a whole; each
    realigns its keys.
    """

    generation: int
    replicageneration: str
    batch: int = 0
    hub_epoch: int = 0
    ruvs: Mapping[str, Ruv] = field(default_factory=dict)
    purge_ruvs: Mapping[str, Ruv] = field(default_factory=dict)
    purge_epoch: int = 0
    replicas: dict[int, ReplicaState] = field(default_factory=dict)
    agreements: dict[str, AgreementState] = field(default_factory=dict)
    to_send: Mapping[str, SendRange] = field(default_factory=dict)
    open: OpenTransactions = field(default_factory=OpenTransactions)
    refusals: Refusals = field(default_factory=dict)
    ranges: tuple[RangeRealign, ...] = ()
    truncations: Truncations = field(default_factory=dict)

    def ruv_of(self, dataset: str) -> Ruv:
        """The RUV of a data set."""
        return self.ruvs.get(dataset) or Ruv(self.replicageneration)

    def purge_ruv_of(self, dataset: str) -> Ruv:
        """The largest purged CSNs of a data set."""
        return self.purge_ruvs.get(dataset) or Ruv(self.replicageneration)

    def without_ranges(self) -> "HubState":
        """The state when its last batch is published again: without ranges, which are read anew.

        A consumer that has them skips that batch, and gets them once more behind it.
        """
        to_send, agreements = dict(self.to_send), dict(self.agreements)
        for name, one in self.to_send.items():
            agreement = self.agreements[name]
            if one.ranges and agreement.resync is not None:
                back = agreement.resync.rolled_back(self.hub_epoch - 1)
                to_send[name] = replace(one, position=back.held, ranges=())
                resync = AgreementStatus.RESYNC
                agreements[name] = replace(agreement, resync=back, status=resync, detail="")
        return replace(self, to_send=to_send, agreements=agreements)

    def waiting_anew(self) -> "HubState":
        """The state of a hub that starts: while none was there nobody could be heard."""
        waiting = {name: replace(one, behind_ms=0) for name, one in self.agreements.items()}
        return replace(self, agreements=waiting)

    @property
    def largest(self) -> dict[int, str]:
        """Rid -> its largest CSN in any data set; no CSN above it is in the changelog."""
        return largest_of(self.ruvs.values())

    @property
    def smallest_mre(self) -> int:
        """The smallest MRE of what may still come: of sessions in force and waiting changes."""
        sessions = [
            replica.mre
            for replica in self.replicas.values()
            if replica.sessions and not replica.is_stopped
        ]
        waiting = [arrived.mre for arrived in self.open.changes.values()]
        return min([*sessions, *waiting], default=self.hub_epoch)

    def open_transactions(self, at_least: int) -> dict[int, int]:
        """Rid -> its transactions that no record behind them frees, where there are so many.

        Those are the uncommitted ones, and those with a change above a hole in the opno. All others
        are kept together on disk, however many there are.
        """
        found = Counter[int]()
        for context, members in self.open.lists.members.items():
            found[context[1]] += context not in self.open.lists.committed or any(
                (self.open.changes[csn].change.opno or 0) > self.replicas[rid].opno
                for csn, (_, rid) in members.items()
            )
        return {rid: count for rid, count in found.items() if count >= at_least}
