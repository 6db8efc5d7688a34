"""Hub epochs in flight: committed, and not yet reflected by a replica."""

from collections.abc import Iterable
from dataclasses import dataclass

from streaming.core.intake.sessions import answer_to
from streaming.core.model.statuses import Stop
from streaming.core.records.record import Applied, Hello, Record
from streaming.core.state.hub_state import HubState


@dataclass(frozen=True, slots=True)
class EpochsInFlight:
    """The hub epochs in (mre, hub_epoch], each in one of three ranges, possibly empty.

    `unsent`: committed at the hub, not sent. `sent`: sent, and not applied according to the
    topics. `unread`: applied, but the hub has not read the `applied`.
    """

    hub_epoch: int
    mre: int
    unsent: range
    sent: range
    unread: range


def flight(hub_epoch: int, mre: int, sent_covers: int, applied: int) -> EpochsInFlight:
    """Return in which range each hub epoch is that the replica has not reflected yet.

    What is applied was sent, and what is sent was committed. Arguments that contradict this (an
    estimate after a hello, a record that the hub will not accept) move a border; they never leave
    a gap.
    """
    reflected = min(mre, hub_epoch)
    back = min(max(applied, reflected), hub_epoch)
    out = min(max(sent_covers, back), hub_epoch)
    return EpochsInFlight(
        hub_epoch,
        mre,
        unsent=range(out + 1, hub_epoch + 1),
        sent=range(back + 1, out + 1),
        unread=range(reflected + 1, back + 1),
    )


def applied_in(
    received: Iterable[tuple[str, Record]], hub: HubState, rid: int, agreement: str, dataset: str
) -> int:
    """Return the largest covers that the hub will accept from records it has not read; 0: none.

    `received`: (session, record) in topic order, after what the hub has read. The rule is that of
    intake: the record is of the current session and generation, and its covers were sent. What
    another hub sent counts nothing.
    """
    replica, one = hub.replicas.get(rid), hub.agreements.get(agreement)
    in_force = replica.session if replica else None
    session = in_force.id if in_force and not in_force.is_elsewhere else None
    known = set(replica.known_sessions) if replica else set()
    sent, applied = one.sent_covers if one else 0, 0
    ruv, published = hub.ruv_of(dataset), one.largest_published if one else hub.hub_epoch
    for speaker, record in received:
        match record:
            case Hello(covers=covers) if speaker not in known:
                answer = answer_to(hub, ruv, dataset, rid, record, published, agreement)
                if isinstance(answer, Stop):
                    break
                is_here = record.is_answered_by(agreement)
                session, sent, applied = (speaker, covers, covers) if is_here else (None, 0, 0)
                known.add(speaker)
            case Applied(covers=covers, generation=hub.generation) if speaker == session:
                if covers > published:
                    break
                applied = max(applied, covers) if covers <= sent else applied
            case _:
                pass
    return applied
