"""Sessions: whether a hello is accepted, where sending continues, what is acknowledged."""

from dataclasses import replace
from functools import partial

from streaming.core.delivery.positions import (
    BelievedPosition,
    ClaimedPosition,
    CommittedHub,
    HubBehind,
    OtherAgreement,
    PositionGap,
    decide,
)
from streaming.core.model.csn import rid_of
from streaming.core.model.row import Floor
from streaming.core.model.ruv import Ruv
from streaming.core.model.statuses import (
    WIRE_VERSION,
    AgreementStatus,
    AwayReason,
    ReplicaStatus,
    Stop,
    StopReason,
)
from streaming.core.records.record import WIRE_VERSIONS, Applied, Hello, ReceivedRecord
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.reflection import Session, new_session, reflect_elsewhere
from streaming.core.state.replica_state import ReplicaState
from streaming.core.tracking.resync import CoveredPosition

KEPT_SESSIONS = 8
KEPT_SESSION_IDS = 256
KEPT_FLOORS = 8


def answer_to(
    state: HubState,
    ruv: Ruv,
    dataset: str,
    rid: int,
    hello: Hello,
    published: int,
    agreement: str | None,
) -> BelievedPosition | PositionGap | Stop:
    """Return from where this hello is answered, or why its replica must be stopped.

    `ruv`: the hub's of this data set when it read the hello. `published`: the largest covers that
    was ever committed to be sent to the replica. `agreement`: of this hub, to it; a hello of
    another one is taken as it is. PositionGap: everything must be copied.
    """
    if hello.ruv.generation and hello.ruv.generation != state.replicageneration:
        return Stop(StopReason.OTHER_REPLICAGENERATION)
    if not hello.is_answered_by(agreement):
        return BelievedPosition(hello.covers, hello.ruv)
    if hello.ruv_of is not None:
        return _no_common_version(hello) or OtherAgreement(hello.ruv_of)
    is_ahead = hello.generation == state.generation and (hello.reached or 0) > state.hub_epoch
    purged = state.purge_ruv_of(dataset)
    hub = CommittedHub(state.generation, ruv, ruv.max_csns(), state.gone_epoch, purged)
    own = hello.own if hello.lost or hello.reinit else ruv.max_of(rid)
    claimed = ClaimedPosition(rid, hello.covers, hello.generation, hello.ruv, own)
    answer = decide(claimed, hub, published, partial(_is_kept, purged))
    if is_ahead or isinstance(answer, HubBehind):
        return Stop(StopReason.HUB_BEHIND)
    return _no_common_version(hello) or answer


def _is_kept(purged: Ruv, csn: str) -> bool:
    """Return whether the changelog still has a change of this CSN, if it ever had."""
    return csn > (purged.max_of(rid_of(csn)) or "")


def _no_common_version(hello: Hello) -> Stop | None:
    """Stop a consumer that understands no wire version of this hub."""
    theirs = hello.versions or WIRE_VERSIONS[:1]
    if set(theirs) & set(WIRE_VERSIONS):
        return None
    numbers = ", ".join(map(str, theirs))
    ours = ", ".join(map(str, WIRE_VERSIONS))
    return Stop(StopReason.UNSUPPORTED, f"{WIRE_VERSION} {numbers}; this hub speaks {ours}")


def with_session(
    replica: ReplicaState, session_id: str, hello: Hello, agreement: str | None, hub_epoch: int
) -> ReplicaState:
    """Return the replica with its new session and a bounded number of old ones.

    `agreement`: of this hub, to the replica; None: there is none. `hub_epoch`: of the batch.
    """
    session = new_session(session_id, hello.epoch, hello.covers)
    if not hello.is_answered_by(agreement):
        session = replace(session, covers=(0,), agreement=hello.agreement or "")
        session = reflect_elsewhere(session, hello.epoch, hello.ruv)
    elif any(one.is_elsewhere for one in replica.sessions):
        session = replace(session, hub_epoch=hub_epoch)
    return replace(
        replica,
        status=ReplicaStatus.LIVE,
        detail="",
        stop_offset=None,
        epoch=hello.epoch,
        sessions=(*replica.sessions, session)[-KEPT_SESSIONS:],
        known_sessions=(*replica.known_sessions, session_id)[-KEPT_SESSION_IDS:],
        snapshot=hello.snapshot,
        ended=None,
        unpublished=hello.unpublished or 0,
    )


def reflected_elsewhere(replica: ReplicaState, applied: Applied) -> ReplicaState:
    """Return the replica after an `applied` of another hub's update: its RUV tells, not its covers.

    Hub epochs are each hub's own numbers (docs/protocol.md, Two hubs).
    """
    *before, session = replica.sessions
    new = reflect_elsewhere(session, applied.epoch, applied.ruv)
    epoch = max(replica.epoch, applied.epoch + 1)
    return replace(replica, sessions=(*before, new), epoch=epoch)


def with_floor(replica: ReplicaState, floor: Floor) -> ReplicaState:
    """Return the replica after a hello that lost state; the oldest of many floors are merged.

    The merged floor covers both: it starts at the older hello and lasts until the newer one's
    epoch.
    """
    floors = (*replica.floors, floor)
    if len(floors) > KEPT_FLOORS:
        oldest, next_, *rest = floors
        after, upto = min(oldest.after, next_.after), max(oldest.upto, next_.upto)
        floors = (Floor(next_.hub_epoch, oldest.offset, after, upto), *rest)
    return replace(replica, floors=floors)


def after_hello(
    agreement: AgreementState, received: ReceivedRecord, hello: Hello, at_ms: int
) -> AgreementState:
    """Return the agreement after a hello: sending continues from the position in the hello.

    One whose consumer was away, or that must copy everything, begins a resync; a resync that is not
    acknowledged goes on or begins again. Where the hello names a snapshot, all that waits for its
    end.
    """
    at, position = _at(agreement, received, hello), CoveredPosition(hello.covers, hello.ruv)
    if agreement.is_paused:
        return at.away(AwayReason.PAUSED, agreement.away_ms)
    if hello.snapshot is not None:
        return at.snapshot_begun()
    resync = agreement.resync
    if resync is not None and resync.is_sent(hello.covers):
        return at.resynced()
    if resync is not None and resync.end is not None:
        reached = hello.reached or 0
        # below the end of the resync, a page may have been sent that its consumer has not applied
        if reached >= resync.end and not hello.lost:
            behind = replace(resync.goes_on_behind(reached), held=position)
            return replace(at, status=AgreementStatus.RESYNC, scanned=reached, resync=behind)
    is_away = agreement.status is AgreementStatus.CHANGE_TRACKING
    if is_away or resync is not None or agreement.lacks_resync:
        return at.resyncing(position, at_ms)
    return at


def _at(agreement: AgreementState, received: ReceivedRecord, hello: Hello) -> AgreementState:
    """The agreement at the position of a hello, as if nothing else were to be done."""
    return replace(
        agreement,
        status=AgreementStatus.CATCHING_UP,
        detail="",
        session=received.session,
        own=hello.own,
        sent_epoch=hello.covers,
        sent_covers=hello.covers,
        sent_ruv=hello.ruv,
        scanned=hello.covers,
        sent_ms=0,
        acked_covers=hello.covers,
        acked_ruv=hello.ruv,
        acked_ms=received.time_ms,
        behind_ms=0,
    )


def after_applied(
    agreement: AgreementState, received: ReceivedRecord, applied: Applied
) -> AgreementState:
    """Return the agreement after an `applied`; an older position only shows that it goes on."""
    reached = applied.covers if applied.reached is None else applied.reached
    heard = replace(agreement, behind_ms=0)
    if agreement.resync is not None:
        resync = agreement.resync.reached(reached)
        is_done = resync.is_sent(applied.covers)
        heard = heard.resynced() if is_done else replace(heard, resync=resync)
    if applied.covers < agreement.acked_covers:
        return heard
    return replace(
        heard, acked_covers=applied.covers, acked_ruv=applied.ruv, acked_ms=received.time_ms
    )


def served_elsewhere(agreement: AgreementState, at_ms: int) -> AgreementState:
    """Return the agreement while another hub serves its consumer; one that is paused stays so."""
    return agreement if agreement.is_paused else agreement.elsewhere(at_ms)


def sent_again(agreement: AgreementState, at_ms: int) -> AgreementState:
    """Return the agreement when what was sent may be lost: sending continues behind the acked.

    One that is sent nothing stays as it is; a resync begins again.
    """
    if not agreement.is_sent_to:
        return agreement
    if agreement.resync is not None:
        return agreement.sent_again().resyncing(agreement.acked, at_ms)
    return agreement.sent_again()


def not_in_force(received: ReceivedRecord, session: Session | None) -> str:
    """Describe what is wrong with a record that is not of the current session."""
    if session is None:
        return f"session {received.session}: no hello precedes this record"
    return (
        f"session {received.session} is not the one of the last hello, {session.id}: another agent"
        " runs under the name of this replica, or did"
    )
