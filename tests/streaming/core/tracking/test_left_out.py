"""A range leaves to its consumer what that wrote over a row that it had seen."""

import pytest

from streaming.core.batch.left_out import is_left_out, uncarried_rows
from streaming.core.model.change import NOBODY
from streaming.core.model.row import Floor, Realign, RowState
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.arrival import Quarantined
from streaming.core.records.record import Reason
from streaming.core.state.replica_state import ReplicaState
from tests.harness.builders import change

CONSUMER, OTHER = 2, 1
COVERS = 5


def row(author: int, epoch: int, *realigns: Realign) -> RowState:
    """A row as the hub has it."""
    return RowState(author, epoch, "csn", exists=True, realign=realigns)


@pytest.mark.parametrize(
    ("at_hub", "floor", "expected"),
    [
        pytest.param(RowState(), None, True, id="nobody has it"),
        pytest.param(RowState(), 9, True, id="nobody has it, whatever was lost"),
        pytest.param(row(OTHER, COVERS), None, True, id="seen"),
        pytest.param(row(OTHER, COVERS + 1), None, False, id="not seen"),
        pytest.param(RowState(OTHER, COVERS + 1, "csn"), None, False, id="a delete not seen"),
        pytest.param(RowState(NOBODY, COVERS + 1), None, False, id="a delete of the hub's"),
        pytest.param(row(CONSUMER, COVERS + 1), None, True, id="its own"),
        pytest.param(row(CONSUMER, COVERS), COVERS + 1, False, id="its own, that it lost"),
        pytest.param(row(CONSUMER, COVERS), COVERS, True, id="its own, that it has back"),
        pytest.param(row(CONSUMER, 3, Realign(CONSUMER, 6)), None, False, id="a refresh not seen"),
        pytest.param(row(CONSUMER, 3, Realign(CONSUMER, 5)), None, True, id="a refresh seen"),
        pytest.param(row(CONSUMER, 3, Realign(OTHER, 6)), None, True, id="another's refresh"),
        pytest.param(
            row(CONSUMER, 3, Realign(CONSUMER, 6, is_of_range=True)), None, True, id="a range"
        ),
    ],
)
def test_a_row_is_left_out_if_its_consumer_had_seen_it(
    at_hub: RowState, floor: int | None, *, expected: bool
) -> None:
    """Otherwise its next write would overwrite what it has not seen, and nobody would notice."""
    floors = () if floor is None else (Floor(floor, 0),)

    assert is_left_out(at_hub, ReplicaState(CONSUMER, floors=floors), COVERS) is expected


def test_the_rows_of_uncarried_records_are_known_by_the_hubs_own_keys() -> None:
    """A range compares these; a truncate, or a key that is none, names no row."""
    tables = {"t": Table("t", ("k",), {"k": ColumnType.DECIMAL})}
    kept = [
        (Reason.TABLE, '{"k": "1.50"}'),
        (Reason.LATE, '{"k":"2"}'),
        (Reason.SKEW, ALL_KEYS),
        (Reason.KEY, '{"k":{"text":"x"}}'),
    ]
    records = [
        Quarantined(2, n, 0, "s", why, "", change(9)._replace(key=key))
        for n, (why, key) in enumerate(kept)
    ]
    unread = Quarantined(2, 9, 0, None, Reason.JSON, "")

    assert uncarried_rows([*records, unread], tables) == {(2, ("t", '{"k":"1.50"}'))}
