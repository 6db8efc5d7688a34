"""Batches of a hub at rest: replayed without a decision where they surely held heartbeats alone.

Such a hub commits one every few seconds, and judging each again would make an audit of a quiet day
one of hours. Where the state that the heartbeats make is not the recorded one, the batch is decided
as any other, and what differs is found there.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from checkpoints.commit.epochs import Checkpoint, Plan
from checkpoints.commit.recorded import RecordedRows
from checkpoints.tables import TableName
from checkpoints.times import ms_of
from streaming.core.model.foreign_json import loads
from streaming.core.records.arrival import ControlOutcome
from streaming.core.records.record import RecordKind
from streaming.core.replay.heartbeats import ReplicaHeartbeat, after_heartbeats
from streaming.core.replay.states import different_states
from streaming.core.state.hub_state import HubState


def state_after_rest(
    before: HubState, rows: RecordedRows, plan: Plan, after: Checkpoint
) -> HubState | None:
    """The state behind a batch of heartbeats alone; None: it is to be decided."""
    if plan.commands or plan.lost or plan.pages or plan.purge or _has_more(rows.tables):
        return None
    events = rows.tables[TableName.EVENTS].to_pylist()
    if any(not _is_heartbeat(row) for row in events):
        return None
    ordered = sorted(events, key=lambda row: row["offset"])
    state = after_heartbeats(before, rows.batch, map(_heartbeat, ordered))
    if state is None or any(different_states(after.state, state)):
        return None
    return state


def _has_more(tables: Mapping[TableName, pa.Table]) -> bool:
    return any(rows.num_rows for name, rows in tables.items() if name is not TableName.EVENTS)


def _is_heartbeat(row: Mapping[str, Any]) -> bool:
    return bool(row["kind"] == RecordKind.HEARTBEAT and row["outcome"] == ControlOutcome.TAKEN)


def _heartbeat(row: Mapping[str, Any]) -> ReplicaHeartbeat:
    """A heartbeat as `events` has it; the hub has checked it when it took it."""
    record, received_ms = loads(row["value"]), ms_of(row["time"])
    unpublished = record.get("unpublished") or 0
    return ReplicaHeartbeat(row["rid"], row["session"], record["epoch"], received_ms, unpublished)
