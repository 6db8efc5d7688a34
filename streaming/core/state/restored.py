"""A hub whose state was restored from a backup: how that is seen, and how it goes on.

What a hub sent is committed before. So an update of a later position than that of the state proves
that the state is an older one. A hub that went on from it would number other batches alike, and its
consumers would skip them.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus, Stop, StopReason
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState


class SentPosition(NamedTuple):
    """What an update says of its hub; compared by generation first."""

    generation: int
    hub_epoch: int


def is_restored(state: HubState, sent: Collection[SentPosition]) -> bool:
    """Return whether something was sent, or is known to a consumer, that the state lacks.

    `sent`: the position of the last update of each updates topic.
    """
    stopped = (one.status is ReplicaStatus.HUB_BEHIND for one in state.replicas.values())
    return is_behind(state, sent) or any(stopped)


def is_behind(state: HubState, sent: Collection[SentPosition]) -> bool:
    """Return whether something was sent that the state lacks."""
    return any(one > (state.generation, state.hub_epoch) for one in sent)


def restored_text(place: object, state: HubState, sent: Mapping[str, SentPosition]) -> str:
    """Say what proves it, and which choices there are; `sent`: updates topic -> its last update."""
    ahead = [f"{t} holds hub epoch {p.hub_epoch}" for t, p in sent.items() if is_behind(state, [p])]
    return (
        f"the state in {place} ends at hub epoch {state.hub_epoch}, but {', '.join(ahead)}: an"
        " older state was restored, and a hub that goes on from it would send other batches under"
        " numbers that its consumers have. Restore the newest state; or, if there is none, run"
        " `slackwater recover` and start the hub: it reads the topics again from where this state"
        " was, and every replica gets a full copy"
    )


def raised(state: HubState, sent: Collection[SentPosition]) -> HubState:
    """Return the state of the next generation: nobody takes its batches for those of the lost one.

    Its hub epoch is above all that was sent. Each consumer gets an empty batch whose `prev` nobody
    has, so it sends a hello; that is of an older generation, and is answered by a full copy.
    """
    generation = max([state.generation, *(one.generation for one in sent)]) + 1
    hub_epoch = max([state.hub_epoch, *(one.hub_epoch for one in sent)]) + 2
    return replace(
        state,
        generation=generation,
        hub_epoch=hub_epoch,
        replicas={rid: _answered(one) for rid, one in state.replicas.items()},
        agreements={n: _asked_for_hello(one, hub_epoch) for n, one in state.agreements.items()},
        to_send={},
    )


def _answered(replica: ReplicaState) -> ReplicaState:
    """One that was stopped because the hub was behind goes on with the hello that it waits at."""
    if replica.status is not ReplicaStatus.HUB_BEHIND:
        return replica
    return replica.stopped(Stop(StopReason.RECOVERED), replica.stop_offset or 0)


def _asked_for_hello(agreement: AgreementState, hub_epoch: int) -> AgreementState:
    anew = replace(
        agreement, is_full=True, resync=None, acked_covers=0, acked_ruv=NOTHING_KNOWN, behind_ms=0
    )
    if agreement.status is AgreementStatus.HUB_BEHIND:
        return anew.stopped(Stop(StopReason.RECOVERED))
    if not agreement.is_sent_to:
        return anew
    return replace(
        anew,
        status=AgreementStatus.IN_SYNC,
        sent_epoch=hub_epoch - 1,
        sent_covers=hub_epoch - 1,
        sent_ruv=NOTHING_KNOWN,
        sent_ms=0,
        scanned=hub_epoch,
    )
