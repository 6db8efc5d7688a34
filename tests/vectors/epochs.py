"""Conflicts of two clusters, one of which detects, played by a hub with two replicas.

The detecting cluster's writes reach the hub at commit, the other's at its sync; a sync delivers
all, then its target has a new epoch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from streaming.core.model.errors import VectorError
from tests.vectors.deviations import CounterRule
from tests.vectors.expectations import differences
from tests.vectors.origin_world import World, canonical
from tests.vectors.outcome import Case, Difference
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
    """Claim that the case is a conflict of two clusters."""
    return case.keys() >= {"function", "detecting_cluster", "setup_rows", "steps"}


def play(case: Case, counters: Sequence[CounterRule]) -> Played:
    """Run the steps and compare, at each sync and at the end."""
    detecting = case["detecting_cluster"]
    rows = {row_of(each): canonical(image_of(each)) for each in case["setup_rows"]}
    world = World.start(CLUSTERS.values(), tables(case), rows)
    found = list[Difference]()
    for segment in segments(steps(case)):
        for transaction in transactions(segment):
            replica = world.replicas[CLUSTERS[transaction[0].cluster]]
            replica.write([(w.op, w.row, w.values) for w in transaction])
            if transaction[0].cluster == detecting:
                world.publish(replica.rid)
        if isinstance(segment[-1], Sync):
            exchange(world, segment[-1], detecting)
            expect = segment[-1].expect
            found += differences(case, world, expect, counters, listed_only=True)
    for record in world.hub.quarantined:
        raise VectorError(f"a record of replica {record.rid} went to quarantine: {record.detail}")
    found += differences(case, world, case["expect"], counters)
    return Played(world, tuple(found))


def exchange(world: World, sync: Sync, detecting: str) -> None:
    """Send what the source has said, then let the target apply all that the hub has for it."""
    source, target = CLUSTERS[sync.source], CLUSTERS[sync.target]
    world.publish(source)
    world.deliver(target)
    if sync.target == detecting:
        world.publish(target)
