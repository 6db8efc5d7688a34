"""What the hub knows of one replica between two batches."""

from dataclasses import dataclass, replace

from streaming.core.model.row import Floor
from streaming.core.model.statuses import (
    FOR_GOOD,
    ReplicaStatus,
    Stop,
    StopReason,
    parse_status,
    status_text,
)
from streaming.core.state.reflection import Session


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """The goodbye of a session's agent; `at_ms`: its record's time. `unpublished`: see Goodbye."""

    at_ms: int
    unpublished: int


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A replica as its own topic shows it; the last of `sessions` is in force.

    `detail`: what the status does not tell, or nothing.
    `opno`: every ordinal up to here was seen; `opno_above`: those seen beyond the first hole.
    `stop_offset`: where reading stopped, for a replica that is stopped. `last_conflict_epoch`: the
    hub epoch of its last conflict; `last_stable_epoch`: what it had reflected when none was open.
    `snapshot`: the id of the snapshot that it is telling. `ended`: the goodbye of the session in
    force. `unpublished`: how much of its journal its agent had not published when it last said so.
    `believed`: its largest CSN that was no skew, or that an operator released, whatever became of
    that change; empty: an eligible or pending one is as large.
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
    ended: AgentEnd | None = None
    unpublished: int = 0
    believed: str = ""

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

    def readmitted(self, offset: int) -> "ReplicaState":
        """A new replica of the rid of one that was retired for good, from this offset on.

        Its next hello is answered by a full copy. Of the old one only the sessions are known.
        """
        new = ReplicaState(self.rid, known_sessions=self.known_sessions)
        return new.stopped(Stop(StopReason.RECOVERED), offset)

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
    def is_elsewhere(self) -> bool:
        """Return whether another hub answers the session in force."""
        return self.session is not None and self.session.is_elsewhere

    def of_agreement(self, name: str) -> "ReplicaState":
        """The replica when its sessions were of this agreement, and are of another hub's now."""
        sessions = (
            one if one.is_elsewhere else replace(one, agreement=name) for one in self.sessions
        )
        return replace(self, sessions=tuple(sessions))

    def judged_up_to(self, hub_epoch: int, csn: str) -> "ReplicaState":
        """The replica after a batch; `csn`: its largest one that was judged."""
        if self.session is None or not self.is_elsewhere:
            return self
        session = self.session.judged_up_to(hub_epoch, csn)
        return replace(self, sessions=(*self.sessions[:-1], session))

    @property
    def mre(self) -> int:
        """The max replicated epoch: what it reflected in the session in force; 0 without one."""
        return self.session.mre if self.session else 0

    @property
    def handles_conflict(self) -> bool:
        """Return whether conflict handling is in progress: its last conflict is not reflected."""
        return self.last_conflict_epoch > self.mre
