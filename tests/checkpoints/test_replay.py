"""Rows that memory does not hold: `rows` as it was brought up to date, and the changelog behind."""

from pathlib import Path

import pytest

from checkpoints.reading.lookup import (
    Images,
    between,
    blocked_up_to,
    edge_of,
    forgotten,
    logged_rows,
)
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.model.row import Realign, RowState
from tests.checkpoints.written_state import WrittenState, change_row, ruv
from tests.harness.builders import csn

KEY = '{"id":"1"}'
ROW = ("t", KEY)
FIRST, SECOND = csn(1, 1), csn(2, 2)
REFRESH = {
    **change_row(3, 3, 0, FIRST),
    "kind": "refresh",
    "verdict": None,
    "to": 2,
    "offset": 7,
    "row_epoch": 1,
    "row_author": 1,
    "cause": "conflict",
}


@pytest.fixture
def state(tmp_path: Path) -> WrittenState:
    """A row is written in hub epoch 1, which `rows` has, refreshed in 3 and written again in 5."""
    made = WrittenState(tmp_path).create()
    first = {
        "table": "t",
        "key": KEY,
        "author": 1,
        "hub_epoch": 1,
        "csn": FIRST,
        "image": '{"v":"first"}',
    }
    made.append(TableName.ROWS, {**first, "realign": []})
    second = {**change_row(5, 5, 0, SECOND), "image": '{"v":"second"}'}
    made.append(TableName.CHANGELOG, {**change_row(1, 1, 0, FIRST), "image": '{"v":"first"}'})
    made.append(TableName.CHANGELOG, REFRESH, second)
    return made


BLOCKED = (Realign(2, 3, 7),)
AT = {
    1: RowState(1, 1, FIRST, exists=True, image='{"v":"first"}'),
    3: RowState(1, 1, FIRST, exists=True, image='{"v":"first"}', realign=BLOCKED),
    5: RowState(2, 5, SECOND, exists=True, image='{"v":"second"}', realign=BLOCKED),
}


@pytest.mark.parametrize("edge", AT)
def test_a_forgotten_row_is_found_as_it_stood(state: WrittenState, edge: int) -> None:
    """A replica that was away long is judged by it, images and blocks included."""
    store = StateStore(state.root)

    found = forgotten(store, [ROW, ("t", '{"id":"2"}')], 1, edge, Images(0))

    assert found == {ROW: AT[edge]}


def test_what_blocked_a_row_before_the_window_blocks_it_still(state: WrittenState) -> None:
    """A later entry of that row must not hide it, wherever the window begins after a start."""
    store = StateStore(state.root)

    found = [
        logged_rows(store, between(after, 5), blocked_up_to(store, 1, after))[ROW]
        for after in (1, 3, 4)
    ]

    assert [row.realign for row in found] == [BLOCKED] * 3
    assert {(row.author, row.hub_epoch, row.csn) for row in found} == {(2, 5, SECOND)}


@pytest.mark.parametrize(("rows", "edge"), [(100, 0), (12, 0), (11, 1), (7, 2), (4, 3), (0, 3)])
def test_a_start_replays_no_more_than_the_window_takes(
    tmp_path: Path, rows: int, edge: int
) -> None:
    """A hub that was behind with `rows` must come up within its memory all the same."""
    state = WrittenState(tmp_path).create()
    for epoch, entries in enumerate((1, 4, 7), start=1):
        state.commit(epoch, epoch, ruv(r1=epoch), counts={"entries": entries})

    assert edge_of(StateStore(tmp_path), 0, 3, rows) == edge
