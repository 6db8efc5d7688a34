"""The hub behind a batch that held heartbeats alone: most batches of a hub that is at rest."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from streaming.core.state.hub_state import HubState


class ReplicaHeartbeat(NamedTuple):
    """A heartbeat that the hub took: of which session, in which epoch, received when."""

    rid: int
    session: str
    epoch: int
    time_ms: int
    unpublished: int = 0


def after_heartbeats(
    state: HubState, batch: int, heartbeats: Iterable[ReplicaHeartbeat]
) -> HubState | None:
    """The state behind these heartbeats in the order of their topics; None: more may follow."""
    replicas = dict(state.replicas)
    for one in heartbeats:
        replica = replicas.get(one.rid)
        session = replica.session if replica and not replica.is_stopped else None
        if replica is None or session is None or session.id != one.session:
            return None
        seen_ms = max(replica.seen_ms, one.time_ms)
        replicas[one.rid] = replace(
            replica, epoch=one.epoch, seen_ms=seen_ms, unpublished=one.unpublished
        )
    return replace(state, batch=batch, replicas=replicas)
