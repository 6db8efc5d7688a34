"""A rid that is taken out for good leaves the RUVs, once nobody needs to be told of its changes."""

from collections.abc import Mapping
from dataclasses import replace

from streaming.core.model.ruv import Element, Ruv
from streaming.core.retention.hold import holds_purge
from streaming.core.state.hub_state import HubState


def waited_for(state: HubState, hub_epoch: int, clock_ms: int, max_away_ms: int) -> list[str]:
    """The agreements whose consumers have to acknowledge a hub epoch for a rid to leave.

    Those that hold the purge: any other gets a full copy.
    """
    return [
        name
        for name, one in state.agreements.items()
        if one.acked_covers < hub_epoch
        and holds_purge(one, state.away_since, clock_ms, max_away_ms)
    ]


def departed(state: HubState, clock_ms: int, max_away_ms: int) -> HubState:
    """The state without the rids that all know of.

    docs/protocol.md, A replica that is retired for good. Whatever of such a rid comes again is
    `purged`, as it is not above the purge RUV. Who has less than that hub epoch might miss what the
    RUV does not name any more, and gets a full copy.
    """
    leaving = state.to_leave
    gone = {
        rid: hub_epoch
        for rid, hub_epoch in leaving.items()
        if not waited_for(state, hub_epoch, clock_ms, max_away_ms)
    }
    if not gone:
        return replace(state, leaving=leaving)
    return replace(
        state,
        ruvs={name: _without(ruv, gone) for name, ruv in state.ruvs.items()},
        purge_ruvs={
            name: state.purge_ruv_of(name).merge(_largest(ruv, gone))
            for name, ruv in state.ruvs.items()
        },
        leaving={rid: at for rid, at in leaving.items() if rid not in gone},
        left_epoch=max(state.left_epoch, *gone.values()),
    )


def _without(ruv: Ruv, gone: Mapping[int, int]) -> Ruv:
    return replace(ruv, elements={r: one for r, one in ruv.elements.items() if r not in gone})


def _largest(ruv: Ruv, gone: Mapping[int, int]) -> Ruv:
    csns = {rid: csn for rid, csn in ruv.max_csns().items() if rid in gone}
    return replace(ruv, elements={rid: Element(csn, csn) for rid, csn in csns.items()})
