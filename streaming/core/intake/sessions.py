"""A session from its hello on: whether it can be answered, where sending goes on, what is acked."""

from collections.abc import Mapping
from dataclasses import replace

from streaming.core.intake.reflection import Session, opened
from streaming.core.model.record import WIRE_VERSIONS, Applied, Hello, ReceivedRecord
from streaming.core.model.row import Floor
from streaming.core.model.state import AgreementState, HubState, ReplicaState
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus, Stop, StopReason

KEPT_SESSIONS = 8
KEPT_SESSION_IDS = 256
KEPT_FLOORS = 8


def stops(
    state: HubState, maxima: Mapping[int, str], rid: int, hello: Hello, *, losses: bool
) -> Stop | None:
    """Why this hello cannot be answered; None: it can.

    `maxima`: rid -> largest eligible CSN at the hub when the hello came. `losses`: a replica that
    lost state is answered.
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
    if hello.lost and not losses:
        return Stop(StopReason.UNSUPPORTED, "hello with lost")
    return _no_common_version(hello)


def _no_common_version(hello: Hello) -> Stop | None:
    """A consumer that does not understand what it would be sent must not be sent anything."""
    theirs = hello.versions or WIRE_VERSIONS[:1]
    if set(theirs) & set(WIRE_VERSIONS):
        return None
    numbers = ", ".join(map(str, theirs))
    ours = ", ".join(map(str, WIRE_VERSIONS))
    return Stop(StopReason.UNSUPPORTED, f"wire version {numbers}; this hub speaks {ours}")


def started(replica: ReplicaState, session_id: str, hello: Hello) -> ReplicaState:
    """The replica in its new session; a bounded number of old ones is remembered."""
    session = opened(session_id, hello.epoch, hello.covers)
    return replace(
        replica,
        status=ReplicaStatus.LIVE,
        detail="",
        epoch=hello.epoch,
        sessions=(*replica.sessions, session)[-KEPT_SESSIONS:],
        known_sessions=(*replica.known_sessions, session_id)[-KEPT_SESSION_IDS:],
    )


def floored(replica: ReplicaState, floor: Floor) -> ReplicaState:
    """The replica behind a hello that lost state; of many floors the oldest two become one.

    That one holds behind the older hello until the newer one's epoch: the safe side.
    """
    floors = (*replica.floors, floor)
    if len(floors) > KEPT_FLOORS:
        oldest, next_, *rest = floors
        after, upto = min(oldest.after, next_.after), max(oldest.upto, next_.upto)
        floors = (Floor(next_.epoch, oldest.offset, after, upto), *rest)
    return replace(replica, floors=floors)


def greeted(agreement: AgreementState, received: ReceivedRecord, hello: Hello) -> AgreementState:
    """The agreement behind a hello: its position is believed and sent from."""
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


def acknowledged(
    agreement: AgreementState, received: ReceivedRecord, applied: Applied
) -> AgreementState:
    """The agreement behind an applied; a position that was passed already changes nothing."""
    if applied.covers < agreement.acked_covers:
        return agreement
    return replace(
        agreement,
        acked_covers=applied.covers,
        acked_ruv=applied.ruv,
        acked_ms=received.time_ms,
    )


def not_in_force(received: ReceivedRecord, session: Session | None) -> str:
    """What is wrong with a record of another session than the one in force."""
    if session is None:
        return f"session {received.session}: no hello stands before this record"
    return f"session {received.session} is not the one of the last hello, {session.id}"
