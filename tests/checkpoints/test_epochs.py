"""The commit row: everything that a hub knows between two batches is read back from it."""

from dataclasses import replace
from typing import Any

from checkpoints.commit.epochs import Checkpoint, checkpoint_of, commit_row
from checkpoints.store import rows_of
from checkpoints.tables import TableName
from streaming.core.model.row import Floor
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.statuses import Stop, StopReason
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import AgentEnd
from tests.checkpoints.written_state import START_S, agreement, replica, ruv
from tests.harness.builders import send_range

STOP = Stop(StopReason.UNSUPPORTED, "refused")
SENT = agreement("to-a", 1, 3, ruv(r2=3))
STATE = HubState(
    generation=2,
    replicageneration="655d1c80000000010000",
    batch=9,
    hub_epoch=4,
    ruvs={"default": ruv(r1=2, r2=3)},
    purge_ruvs={"default": ruv(r1=1)},
    purge_epoch=1,
    replicas={
        1: replica(
            1,
            covers=3,
            opno=5,
            opno_above=frozenset({7}),
            floors=(Floor(2, 8, "a", "b"),),
            unpublished=6,
            believed="655d1c80000000010000",
        ),
        2: replica(2, covers=2).stopped(STOP, offset=11),
        3: replica(3, covers=2, snapshot="s1", ended=AgentEnd(START_S * 1000, 4)),
    },
    agreements={"to-a": SENT, "to-b": agreement("to-b", 2, 2, NOTHING_KNOWN).stopped(STOP)},
    to_send={"to-a": send_range(3, 4, 3, ruv(r2=3))},
)


def row_of(state: HubState) -> dict[str, Any]:
    """The commit row, as it comes out of the table."""
    checkpoint = Checkpoint(state, {"t": 7}, {"t": "id"}, 1, at_ms=START_S * 1000)
    row: dict[str, Any] = rows_of(TableName.EPOCHS, [commit_row(checkpoint, "hub")]).to_pylist()[0]
    return row


def test_a_checkpoint_is_read_back_as_it_was_committed() -> None:
    """Positions, statuses, and what the batch publishes: a restart publishes it again."""
    row = row_of(STATE)

    assert checkpoint_of(row).state == STATE


def test_an_agreement_without_a_range_publishes_nothing_after_a_restart() -> None:
    """A range that came back from an older batch would be published a second time."""
    row = row_of(replace(STATE, to_send={}))

    assert checkpoint_of(row).state.to_send == {}


def test_statuses_are_stored_as_the_texts_that_status_shows() -> None:
    """Earlier versions wrote these texts, and operators' queries read them."""
    row = row_of(STATE)

    assert [one["state"] for one in row["replicas"]] == ["live", "unsupported: refused", "live"]
    assert [one["state"] for one in row["agreements"]] == ["in_sync", "unsupported: refused"]
