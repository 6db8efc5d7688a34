"""What the hub knows of one agreement between two batches."""

from dataclasses import dataclass, replace

from streaming.core.matrix.packets import PacketFeed
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.model.statuses import (
    FOR_GOOD,
    AgreementStatus,
    AwayReason,
    Stop,
    StopReason,
    parse_status,
    status_text,
)
from streaming.core.tracking.ranges import KeyRange
from streaming.core.tracking.resync import CoveredPosition, Resync


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
    everything; `scans`: it scans these tables. `feed`: of a consumer that is sent packets; None: it
    reads its updates topic.
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
    feed: PacketFeed | None = None

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
        named = session or self.session
        return replace(self, status=status, detail=stop.detail, session=named)

    @property
    def goes_on_with_resync(self) -> bool:
        """Return whether a resync is under way that began with an earlier batch."""
        return self.status is AgreementStatus.RESYNC and not self.begins_resync

    @property
    def largest_published(self) -> int:
        """The largest covers that was ever committed to be sent to its consumer."""
        return max(self.published, self.sent_covers)

    @property
    def largest_sent(self) -> int:
        """The largest hub epoch of what its consumer may have been sent.

        What is sent again may have arrived the first time: `sent_covers` stays then.
        """
        return max(self.sent_epoch, self.scanned, self.sent_covers)

    @property
    def estimated(self) -> int:
        """The hub epoch up to which its consumer is taken to have everything.

        The row of the matrix is of it. It is raised when something is sent, in a resync by its last
        page; an operator lowers it, when what was sent is lost, or raises it.
        """
        if self.resync is not None and not self.resync.last_page:
            return self.resync.held.covers
        return self.sent_epoch

    @property
    def begins_resync(self) -> bool:
        """Return whether a resync begins with this batch."""
        return self.resync is not None and self.resync.end is None

    @property
    def acked(self) -> CoveredPosition:
        """The position that its consumer has acknowledged."""
        return CoveredPosition(self.acked_covers, self.acked_ruv)

    @property
    def lacks_resync(self) -> bool:
        """Return whether its consumer lacks what only a resync brings, and none is under way."""
        return self.resync is None and (self.is_full or bool(self.scans))

    @property
    def is_sent_to(self) -> bool:
        """Return whether anything is sent to its consumer."""
        return self.session is not None and self.status.is_sent_to

    def is_held(self, hub_epoch: int) -> bool:
        """Return whether its consumer's position stays held, once it has all up to this hub epoch.

        It moves with the last page of a resync.
        """
        return self.resync is not None and not self.resync.is_sent(hub_epoch)

    def begun(self, hub_epoch: int) -> "AgreementState":
        """The agreement with the end of a resync that this batch begins, of this hub epoch."""
        if self.resync is None or self.resync.end is not None:
            return self
        return replace(self, resync=replace(self.resync, end=hub_epoch), scanned=hub_epoch)

    @property
    def awaits_acknowledgement(self) -> bool:
        """Return whether its consumer has to acknowledge something that it was sent.

        One that is sent packets has no time to do so: they may be under way for days.
        """
        if self.feed is not None:
            return False
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

        One whose topic refused something is not tried again before `again_ms`. One that is paused
        or needs a copy before its delay waits for an operator, one that another hub serves for its
        hello.
        """
        stays = (AwayReason.PAUSED, AwayReason.ELSEWHERE, AwayReason.DELAYED)
        if self.status is not AgreementStatus.CHANGE_TRACKING or self.detail in stays:
            return False
        return not self.is_unwritable or clock_ms - self.away_ms >= again_ms

    @property
    def is_unwritable(self) -> bool:
        """Return whether its consumer is away because its topic refused what it was sent."""
        return self._is_away(AwayReason.UNWRITABLE)

    @property
    def has_position(self) -> bool:
        """Return whether its consumer says how far it is; to another hub it says so by itself."""
        return self.session is not None and not self.is_elsewhere

    @property
    def is_elsewhere(self) -> bool:
        """Return whether another hub serves its consumer."""
        return self._is_away(AwayReason.ELSEWHERE)

    @property
    def awaits_release(self) -> bool:
        """Return whether it needs a copy that an operator has to release, for its delay."""
        return self._is_away(AwayReason.DELAYED)

    @property
    def is_paused(self) -> bool:
        """Return whether an operator paused it."""
        return self._is_away(AwayReason.PAUSED)

    def _is_away(self, why: AwayReason) -> bool:
        return self.status is AgreementStatus.CHANGE_TRACKING and self.detail == why

    def elsewhere(self, at_ms: int) -> "AgreementState":
        """The agreement while another hub serves its consumer."""
        return self if self.is_elsewhere else self.away(AwayReason.ELSEWHERE, at_ms)

    def away(self, why: AwayReason, at_ms: int) -> "AgreementState":
        """The agreement when its consumer counts as away: what it lacks adds up from the acked."""
        gone = replace(self, status=AgreementStatus.CHANGE_TRACKING, detail=why.value)
        return replace(gone, behind_ms=0, away_ms=at_ms, resync=None)

    def resyncing(self, held: CoveredPosition, at_ms: int) -> "AgreementState":
        """The agreement when a resync begins with this batch, from what its consumer has.

        The packet before may be lost, so the first page of a resync by packets continues that too.
        """
        new = Resync(None, held, at_ms)
        known = self if self.feed is None else self.sent_again()
        return replace(known, status=AgreementStatus.RESYNC, detail="", behind_ms=0, resync=new)

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
        return self.resyncing(self.acked, at_ms) if self.lacks_resync else self.sent_again()

    def sent_again(self) -> "AgreementState":
        """The agreement when sending goes on behind what its consumer has acknowledged.

        `sent_covers` stays, for the consumer may have applied all that was sent. It skips what it
        has, by hub epoch.
        """
        return self.sent_behind(self.acked)

    def sent_behind(self, row: CoveredPosition) -> "AgreementState":
        """The agreement when sending goes on behind this position, whatever was sent."""
        return replace(
            self,
            status=AgreementStatus.CATCHING_UP,
            sent_epoch=row.covers,
            sent_ruv=row.ruv,
            scanned=row.covers,
            sent_ms=0,
        )

    def unsent(self, promised: SendRange | None) -> "AgreementState":
        """The agreement when its last packet is not there: its range is sent by another one.

        `promised`: what that packet held; None: nothing. The consumer may have got it all the same,
        so what is believed of it stays. Pages of a resync are read anew.
        """
        if promised is None:
            return self
        resync = self.resync and self.resync.rolled_back(promised.to - 1)
        return replace(
            self,
            status=AgreementStatus.RESYNC if resync else AgreementStatus.CATCHING_UP,
            detail="",
            sent_epoch=promised.prev,
            sent_ruv=promised.known,
            scanned=promised.after,
            resync=resync,
        )

    def rescanning(self, table: str, at_ms: int) -> "AgreementState":
        """The agreement when its consumer must get a table back, now or with its next resync.

        One that is under way read the table before, so it begins anew when it goes on.
        """
        marked = replace(self, scans=self.scans | {table}, resync=None)
        return marked.resyncing(self.acked, at_ms) if self.is_sent_to else marked

    def below_purge(self, purge_epoch: int, at_ms: int) -> "AgreementState":
        """The agreement when history up to this hub epoch is purged.

        If its consumer lacks some of that, only a full copy brings it. That begins at once where it
        is sent to.
        """
        if self.session is None or self.is_full or self.acked_covers >= purge_epoch:
            return self
        marked = replace(self, is_full=True, resync=None)
        return marked.resyncing(marked.acked, at_ms) if marked.is_sent_to else marked

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

    def readmitted(self, hub_epoch: int, batch: int) -> "AgreementState":
        """A new agreement for the new replica of a rid that was retired for good.

        A feed numbers its packets above the earlier ones: each took a batch.
        """
        published = max(hub_epoch, self.largest_published)
        new = AgreementState(self.name, self.consumer, published=published, is_full=True)
        feed = None if self.feed is None else PacketFeed(number=batch)
        return replace(new.stopped(Stop(StopReason.RECOVERED)), feed=feed)

    def retired(self) -> "AgreementState":
        """The agreement when it is not configured any more; the detail keeps why it was stopped."""
        if self.is_retired:
            return self
        detail = self.status_text if self.status.keeps_place else ""
        return replace(self, status=AgreementStatus.RETIRED, detail=detail)

    def revived(self) -> "AgreementState":
        """The agreement when it is configured: one that was not goes on where it was.

        One that lacks what only a resync brings begins that when its consumer is heard.
        """
        if not self.is_retired or self.detail == FOR_GOOD:
            return self
        if self.detail:
            status, detail = parse_status(AgreementStatus, self.detail)
            return replace(self, status=status, detail=detail)
        again = self.resumed()
        waits = again.is_sent_to and again.lacks_resync
        return again.away(AwayReason.SILENT, self.away_ms) if waits else again
