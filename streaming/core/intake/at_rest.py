"""Whether a batch says anything new: the hub needs no commit of one that does not."""

from dataclasses import replace

from streaming.core.state.hub_state import HubState


def says_nothing_new(before: HubState, after: HubState) -> bool:
    """Return whether a batch sends nothing, and changed nothing but when replicas were heard."""
    heard = {
        rid: replace(one, seen_ms=after.replicas[rid].seen_ms)
        for rid, one in before.replicas.items()
        if rid in after.replicas
    }
    return after == replace(before, batch=after.batch, replicas=heard, to_send={})
