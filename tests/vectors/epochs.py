"""Conflicts of two clusters, one of which detects, played by a hub with two replicas.

The detecting cluster's writes reach the hub at commit, the other's at its sync; a sync delivers
all, then its target has a new epoch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.vectors.deviations import CounterRule
from tests.vectors.expectations import Moment, differences
from tests.vectors.findings import of_hub
from tests.vectors.origin_findings import origin_findings
from tests.vectors.origin_world import World, canonical
from tests.vectors.outcome import Case, Difference, VectorError
from tests.vectors.steps import (
    CLUSTERS,
    Sync,
    image_of,
    row_of,
    segments,
    steps,
    tables,
    transactions,
)


@dataclass(frozen=True, slots=True)
class Played:
    """The world at the end, and what was not as expected, then and on the way."""

    world: World
    differences: tuple[Difference, ...]


def is_epoch_case(case: Case) -> bool:
    """Return whether the case is a conflict of two clusters."""
    return case.keys() >= {"function", "detecting_cluster", "setup_rows", "steps"}


def play(case: Case, counters: Sequence[CounterRule]) -> Played:
    """Run the steps and compare, at each sync and at the end."""
    world, moments = _run(case)
    for record in world.hub.quarantined:
        raise VectorError(f"a record of replica {record.rid} went to quarantine: {record.detail}")
    if not any(differences(case, moment, counters) for moment in moments):
        return Played(world, ())
    origin = origin_findings(case)
    found = (differences(case, moment, counters, origin[moment.step]) for moment in moments)
    return Played(world, tuple(each for of_moment in found for each in of_moment))


def _run(case: Case) -> tuple[World, list[Moment]]:
    """Run the steps: the world at the end, and what is expected and found at each sync and then."""
    detecting, all_steps = case["detecting_cluster"], steps(case)
    rows = {row_of(each): canonical(image_of(each)) for each in case["setup_rows"]}
    world = World.start(CLUSTERS.values(), tables(case), rows)
    places = {id(step): place for place, step in enumerate(all_steps)}
    written = dict[str, int]()
    moments = list[Moment]()
    for segment in segments(all_steps):
        for transaction in transactions(segment):
            replica = world.replicas[CLUSTERS[transaction[0].cluster]]
            csns = replica.write([(w.op, w.row, w.values) for w in transaction])
            written |= {c: places[id(w)] for c, w in zip(csns, transaction, strict=True) if c}
            if transaction[0].cluster == detecting:
                world.publish(replica.rid)
        sync = segment[-1]
        if isinstance(sync, Sync):
            exchange(world, sync, detecting)
            found = of_hub(world, written)
            moments.append(Moment(places[id(sync)], sync.expect, found, listed_only=True))
    moments.append(Moment(len(all_steps), case["expect"], of_hub(world, written)))
    return world, moments


def exchange(world: World, sync: Sync, detecting: str) -> None:
    """Send what the source has said, then let the target apply all that the hub has for it."""
    source, target = CLUSTERS[sync.source], CLUSTERS[sync.target]
    world.publish(source)
    world.deliver(target)
    if sync.target == detecting:
        world.publish(target)
