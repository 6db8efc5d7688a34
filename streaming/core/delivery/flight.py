"""Hub epochs in flight: how far each has come on its way to a replica and back."""

from collections.abc import Iterable
from dataclasses import dataclass

from streaming.core.intake.sessions import stops
from streaming.core.model.record import Applied, Hello, Record
from streaming.core.model.state import HubState

Epochs = range
"""Hub epochs one after another; empty: none."""


@dataclass(frozen=True, slots=True)
class Flight:
    """The hub epochs in (mre, hub_epoch], each in one of three ranges.

    `unsent`: committed at the hub, on the way out. `sent`: sent, and not applied as far as the
    topics tell. `unread`: applied, on the way back, and not read by the hub.
    """

    hub_epoch: int
    mre: int
    unsent: Epochs
    sent: Epochs
    unread: Epochs


def flight(hub_epoch: int, mre: int, sent_covers: int, applied: int) -> Flight:
    """Where every hub epoch is that the replica has not reflected yet.

    What comes back was sent, and what is sent was committed: who says otherwise (an estimate
    behind a hello, a record that the hub will not believe) moves a border, and never makes a gap.
    """
    reflected = min(mre, hub_epoch)
    back = min(max(applied, reflected), hub_epoch)
    out = min(max(sent_covers, back), hub_epoch)
    return Flight(
        hub_epoch,
        mre,
        unsent=range(out + 1, hub_epoch + 1),
        sent=range(back + 1, out + 1),
        unread=range(reflected + 1, back + 1),
    )


def applied_in(
    received: Iterable[tuple[str, Record]], hub: HubState, rid: int, agreement: str, dataset: str
) -> int:
    """The largest covers that the hub will believe of records that it has not read; 0: none.

    `said`: (session, record) in topic order, behind what the hub has read. Believed is what
    intake believes: of the session in force, of this generation, and not above what was sent.
    """
    replica, one = hub.replicas.get(rid), hub.agreements.get(agreement)
    session = replica.session.id if replica and replica.session else None
    known = set(replica.known_sessions) if replica else set()
    sent, applied = one.sent_covers if one else 0, 0
    largest = hub.ruv_of(dataset).max_csns()
    for speaker, record in received:
        match record:
            case Hello(covers=covers) if speaker not in known:
                if stops(hub, largest, rid, record, losses=False) is not None:
                    break
                session, sent, applied = speaker, covers, covers
                known.add(speaker)
            case Applied(covers=covers, generation=generation):
                believed = speaker == session and generation == hub.generation and covers <= sent
                applied = max(applied, covers) if believed else applied
            case _:
                pass
    return applied
