"""The records of a stopped replica's topic: they are left unread until the replica starts anew."""

from collections.abc import Sequence
from dataclasses import replace

from streaming.core.model.record import Applied, Heartbeat, Hello, ReceivedRecord
from streaming.core.model.state import AgreementState, ReplicaState
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus

KEPT_BEHIND_STOP = 10_000
"""How many records may stand behind a stop before they go to quarantine, unread."""


def starts_anew(received: ReceivedRecord, replica: ReplicaState) -> Hello | None:
    """Return the record if it is a hello with `reinit` of a session that is not known yet.

    A replica whose input was lost starts anew only when an operator has given up what was lost.
    """
    hello = received.record
    if replica.status is ReplicaStatus.INPUT_LOST:
        return None
    if received.reason is not None or not isinstance(hello, Hello) or not hello.reinit:
        return None
    return None if received.session in replica.known_sessions else hello


def says_nothing_of_rows(received: ReceivedRecord) -> bool:
    """Return whether the record only told of a session that never came into force."""
    return received.reason is None and isinstance(received.record, Hello | Applied | Heartbeat)


def with_last_session(
    agreement: AgreementState, unread: Sequence[ReceivedRecord]
) -> AgreementState:
    """Return a stopped agreement with the last session that was started behind the stop.

    That session is told that its replica is stopped. Where input is lost, the hello may be part of
    it: then any record tells of its session.
    """
    is_lost = agreement.status in (AgreementStatus.INPUT_LOST, AgreementStatus.RECOVERED)
    known = [one for one in unread if one.session and not one.reason]
    told = [one.session for one in known if is_lost or isinstance(one.record, Hello)]
    return replace(agreement, session=told[-1]) if told else agreement
