"""Sessions: whether a hello is accepted, where sending continues, what is acknowledged."""

from collections.abc import Mapping
from dataclasses import replace

from streaming.core.intake.reflection import Session, new_session
from streaming.core.model.record import WIRE_VERSIONS, Applied, Hello, ReceivedRecord
from streaming.core.model.row import Floor
from streaming.core.model.state import AgreementState, HubState, ReplicaState
from streaming.core.model.statuses import (
    WIRE_VERSION,
    AgreementStatus,
    ReplicaStatus,
    Stop,
    StopReason,
)

KEPT_SESSIONS = 8
KEPT_SESSION_IDS = 256
KEPT_FLOORS = 8


def reason_to_stop(
    state: HubState, maxima: Mapping[int, str], rid: int, hello: Hello
) -> Stop | None:
    """Return why this hello must stop its replica; None: it is accepted.

    `maxima`: rid -> the hub's largest eligible CSN when it read the hello.
    """
    if hello.ruv.generation and hello.ruv.generation != state.replicageneration:
        return Stop(StopReason.OTHER_REPLICAGENERATION)
    ahead = any(
        csn > maxima[other]
        for other, csn in hello.ruv.max_csns().items()
        if other != rid and other in maxima
    )
    if ahead or hello.covers > state.hub_epoch or hello.generation > state.generation:
        return Stop(StopReason.HUB_BEHIND)
    return _no_common_version(hello)


def _no_common_version(hello: Hello) -> Stop | None:
    """Stop a consumer that understands no wire version of this hub."""
    theirs = hello.versions or WIRE_VERSIONS[:1]
    if set(theirs) & set(WIRE_VERSIONS):
        return None
    numbers = ", ".join(map(str, theirs))
    ours = ", ".join(map(str, WIRE_VERSIONS))
    return Stop(StopReason.UNSUPPORTED, f"{WIRE_VERSION} {numbers}; this hub speaks {ours}")


def with_session(replica: ReplicaState, session_id: str, hello: Hello) -> ReplicaState:
    """Return the replica with its new session and a bounded number of old ones."""
    session = new_session(session_id, hello.epoch, hello.covers)
    return replace(
        replica,
        status=ReplicaStatus.LIVE,
        detail="",
        stop_offset=None,
        epoch=hello.epoch,
        sessions=(*replica.sessions, session)[-KEPT_SESSIONS:],
        known_sessions=(*replica.known_sessions, session_id)[-KEPT_SESSION_IDS:],
    )


def without_past(replica: ReplicaState) -> ReplicaState:
    """Return the replica without the sessions by which what it writes next could be judged.

    Its floors stay: each is of changes behind its own hello.
    """
    return replace(replica, sessions=())


def with_floor(replica: ReplicaState, floor: Floor) -> ReplicaState:
    """Return the replica after a hello that lost state; the oldest of many floors are merged.

    The merged floor covers both: it starts at the older hello and lasts until the newer one's
    epoch.
    """
    floors = (*replica.floors, floor)
    if len(floors) > KEPT_FLOORS:
        oldest, next_, *rest = floors
        after, upto = min(oldest.after, next_.after), max(oldest.upto, next_.upto)
        floors = (Floor(next_.epoch, oldest.offset, after, upto), *rest)
    return replace(replica, floors=floors)


def after_hello(
    agreement: AgreementState, received: ReceivedRecord, hello: Hello
) -> AgreementState:
    """Return the agreement after a hello: sending continues from the position in the hello."""
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
    )


def after_applied(
    agreement: AgreementState, received: ReceivedRecord, applied: Applied
) -> AgreementState:
    """Return the agreement after an `applied`; an older position changes nothing."""
    if applied.covers < agreement.acked_covers:
        return agreement
    return replace(
        agreement,
        acked_covers=applied.covers,
        acked_ruv=applied.ruv,
        acked_ms=received.time_ms,
    )


def sent_again(agreement: AgreementState) -> AgreementState:
    """Return the agreement when what was sent may be lost: sending continues behind the acked.

    `sent_covers` stays, for the consumer may have applied all that was sent. It skips what it has,
    by hub epoch. One that waits for a hello, or is stopped, is sent nothing.
    """
    if agreement.session is None or agreement.is_stopped:
        return agreement
    return replace(
        agreement,
        status=AgreementStatus.CATCHING_UP,
        sent_epoch=agreement.acked_covers,
        sent_ruv=agreement.acked_ruv,
        scanned=agreement.acked_covers,
        sent_ms=0,
    )


def not_in_force(received: ReceivedRecord, session: Session | None) -> str:
    """Describe what is wrong with a record that is not of the current session."""
    if session is None:
        return f"session {received.session}: no hello precedes this record"
    return (
        f"session {received.session} is not the one of the last hello, {session.id}: another agent"
        " runs under the name of this replica, or did"
    )
