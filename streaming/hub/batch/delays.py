"""The delays behind a batch: how late what each origin wrote is at each consumer."""

from collections.abc import Mapping

import pyarrow as pa

from checkpoints.commit.epochs import Checkpoint
from checkpoints.query import open_table
from checkpoints.reading.delays import recorded_delays
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.delivery.recovery_point import (
    CommittedPoints,
    Delays,
    committed_points,
    first_open_ms,
)
from streaming.core.state.hub_state import HubState
from streaming.core.state.topology import Topology
from streaming.stages.groups import grouped


def delays_after(
    delays: Delays, topology: Topology, after: HubState, eligible: pa.Table, at_ms: int
) -> Delays:
    """The delays behind a batch; `eligible`: the changes that it judged, as ELIGIBLE."""
    return delays.after(_points(topology, after, at_ms, _first_ms(eligible)))


def delays_at_start(store: StateStore, topology: Topology, last: Checkpoint) -> Delays:
    """The delays of a hub that starts behind this commit, as `delays` has them."""
    recorded = recorded_delays(open_table(store.root, TableName.DELAYS), last.state.batch)
    return recorded.starting(_points(topology, last.state, last.at_ms, {}))


def _points(
    topology: Topology, state: HubState, at_ms: int, first_ms: Mapping[int, int]
) -> CommittedPoints:
    opened = first_open_ms(state.open)
    return committed_points(state, opened, at_ms, topology.dataset_at, first_ms)


def _first_ms(eligible: pa.Table) -> dict[int, int]:
    """Origin -> the time of the first change of its that the batch judged; 0: it is not known."""
    found = grouped(eligible.select(["rid", "time"]), ["rid"]).aggregate([("time", "min")])
    first_us = found["time_min"].cast(pa.int64()).to_pylist()
    return dict(zip(found["rid"].to_pylist(), ((us or 0) // 1000 for us in first_us), strict=True))
