"""A purge: what it takes from the history, what has to stay, and the state behind it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from streaming.core.model.ruv import Element, Ruv, largest_of
from streaming.core.retention.departure import departed
from streaming.core.retention.hold import away_since, purge_limit, tombstone_limit
from streaming.core.state.hub_state import HubState

ListPlace = tuple[str, int]
"""A data set and a rid."""


@dataclass(frozen=True, slots=True)
class Purge:
    """A purge as a plan holds it.

    `epoch`: the changelog up to this hub epoch is purged. `batch`: the oldest that is kept; the
    state behind it is the oldest that can be asked for. `purged`: data set -> by rid the largest
    CSN that this purge takes; `kept`: data set -> by rid the smallest one that it leaves.
    """

    epoch: int
    batch: int
    purged: Mapping[str, Ruv]
    kept: Mapping[str, Ruv]


@dataclass(frozen=True, slots=True)
class PurgedList:
    """What a purge does to the changes of one replica in one data set.

    `edge`: the largest CSN up to the purge epoch. `is_last`: it is the largest of all, and stays.
    """

    edge: str
    is_last: bool


def purged_lists(state: HubState, at: Mapping[str, Ruv]) -> dict[ListPlace, PurgedList]:
    """The lists of which a purge takes something; `at`: the RUVs behind the purge epoch."""
    found = {}
    for dataset, ruv in state.ruvs.items():
        for rid, element in ruv.elements.items():
            edge = at[dataset].max_of(rid) if dataset in at else None
            if edge is not None and element.min_csn is not None and element.min_csn <= edge:
                found[dataset, rid] = PurgedList(edge, edge == element.max_csn)
    return {
        place: one
        for place, one in found.items()
        if not one.is_last or state.ruvs[place[0]].min_of(place[1]) != one.edge
    }


def purge_of(
    state: HubState,
    epoch: int,
    batch: int,
    lists: Mapping[ListPlace, PurgedList],
    below: Mapping[ListPlace, str],
    above: Mapping[ListPlace, str],
) -> Purge:
    """The purge up to a hub epoch.

    The largest CSN of a replica stays: it is where sending starts. `below`: of the lists whose
    last change stays, the largest CSN under it. `above`: of the others, the smallest CSN behind
    the purge epoch.
    """
    purged, kept = dict[str, dict[int, str]](), dict[str, dict[int, str]]()
    for (dataset, rid), one in lists.items():
        gone = below.get((dataset, rid)) if one.is_last else one.edge
        left = one.edge if one.is_last else above.get((dataset, rid))
        if gone is not None and left is not None:
            purged.setdefault(dataset, {})[rid] = gone
            kept.setdefault(dataset, {})[rid] = left
    return Purge(epoch, batch, _ruvs(state, purged), _ruvs(state, kept))


def _ruvs(state: HubState, csns: Mapping[str, Mapping[int, str]]) -> dict[str, Ruv]:
    return {
        dataset: Ruv(state.replicageneration, {rid: Element(csn, csn) for rid, csn in of.items()})
        for dataset, of in csns.items()
    }


def with_retention(
    before: HubState, after: HubState, purge: Purge | None, clock_ms: int, max_away_ms: int
) -> HubState:
    """The state after a batch: who is away, what its plan purges, and the rids that leave the RUVs.

    The purge is left out if the batch brought somebody who needs what it would take.
    """
    after = replace(after, away_since=away_since(before, after.agreements, clock_ms))
    if purge is not None and purge.epoch <= purge_limit(after, clock_ms, max_away_ms):
        after = purged(after, purge)
        limit = min(after.purge_epoch, tombstone_limit(after, clock_ms, max_away_ms))
        after = replace(after, tombstone_epoch=max(after.tombstone_epoch, limit))
    after = departed(after, clock_ms, max_away_ms)
    if after.gone_epoch == before.gone_epoch:
        return after
    agreements = {
        name: one.below_purge(after.gone_epoch, clock_ms) for name, one in after.agreements.items()
    }
    return replace(after, agreements=agreements)


def purged(state: HubState, purge: Purge) -> HubState:
    """The state behind a purge; it never goes back."""
    return replace(
        state,
        purge_epoch=max(state.purge_epoch, purge.epoch),
        purge_batch=max(state.purge_batch, purge.batch),
        purge_ruvs={**state.purge_ruvs, **_raised(state.purge_ruvs, purge.purged)},
        ruvs={**state.ruvs, **_without_first(state.ruvs, purge.kept)},
    )


def _raised(known: Mapping[str, Ruv], purged: Mapping[str, Ruv]) -> dict[str, Ruv]:
    return {
        dataset: known[dataset].merge(ruv) if dataset in known else ruv
        for dataset, ruv in purged.items()
    }


def _without_first(ruvs: Mapping[str, Ruv], kept: Mapping[str, Ruv]) -> dict[str, Ruv]:
    """The RUVs whose smallest CSNs are those that the changelog still has."""
    return {
        dataset: replace(
            ruvs[dataset],
            elements={
                rid: replace(one, min_csn=kept[dataset].min_of(rid) or one.min_csn)
                for rid, one in ruvs[dataset].elements.items()
            },
        )
        for dataset in kept.keys() & ruvs.keys()
    }


def spared(state: HubState) -> Collection[str]:
    """The CSNs that a purge leaves, though they may be of a hub epoch that is purged."""
    elements = (one for ruv in state.ruvs.values() for one in ruv.elements.values())
    return sorted({one.min_csn for one in elements if one.min_csn is not None})


def purged_up_to(state: HubState) -> dict[int, str]:
    """Rid -> the CSN up to which all of it are purged, in every data set that has some.

    Nothing of it that is open or waits is as small; of a rid of which some is, nothing is said.
    Of one that has left the RUVs it is all that there was.
    """
    found = largest_of(state.purge_ruvs.values())
    for rid in {rid for ruv in state.ruvs.values() for rid in ruv.max_csns()}:
        edges = [
            state.purge_ruv_of(dataset).max_of(rid)
            for dataset, ruv in state.ruvs.items()
            if ruv.max_of(rid) is not None
        ]
        found.pop(rid, None)
        if all(edges):
            found[rid] = min(edge for edge in edges if edge is not None)
    for context, members in state.open.lists.members.items():
        rid, smallest = context[1], min([context[0], *members])
        if smallest <= found.get(rid, ""):
            del found[rid]
    return found
