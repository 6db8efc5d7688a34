"""The records of a stopped replica's topic: they are left unread until the replica starts anew."""

from collections.abc import Sequence
from dataclasses import replace

from streaming.core.model.statuses import AgreementStatus, ReplicaStatus
from streaming.core.records.record import (
    Applied,
    Goodbye,
    Heartbeat,
    Hello,
    LocalWrites,
    PublishedSchema,
    ReceivedRecord,
    Refused,
)
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.replica_state import ReplicaState

KEPT_BEHIND_STOP = 10_000
"""How many records may stand behind a stop before they go to quarantine, unread."""


def starts_again(received: ReceivedRecord, replica: ReplicaState) -> Hello | None:
    """Return the record if it is a hello that starts a stopped replica; its session is not known.

    That is one with `reinit`. A replica whose input was lost starts with any, but only when an
    operator has given up what was lost; one that is retired never does.
    """
    hello = received.record
    if replica.status in (ReplicaStatus.INPUT_LOST, ReplicaStatus.RETIRED):
        return None
    if received.reason is not None or not isinstance(hello, Hello):
        return None
    is_recovered = replica.status is ReplicaStatus.RECOVERED
    is_due = hello.reinit or is_recovered
    return hello if is_due and received.session not in replica.known_sessions else None


def says_nothing_of_rows(received: ReceivedRecord) -> bool:
    """Return whether the record only told of a session that never came into force.

    What its database refused, it refuses again: whoever starts again is sent the row anew.
    """
    return received.reason is None and isinstance(
        received.record,
        Hello | Applied | Heartbeat | Goodbye | PublishedSchema | LocalWrites | Refused,
    )


def with_last_session(
    agreement: AgreementState, unread: Sequence[ReceivedRecord]
) -> AgreementState:
    """Return a stopped agreement with the last session that was started behind the stop.

    That session is told that its replica is stopped. Where input is lost, the hello may be part of
    it: then any record tells of its session.
    """
    is_lost = agreement.status in (AgreementStatus.INPUT_LOST, AgreementStatus.RECOVERED)
    known = [one for one in unread if one.session and not one.reason]
    named = [one.session for one in known if is_lost or isinstance(one.record, Hello)]
    return replace(agreement, session=named[-1]) if named else agreement
