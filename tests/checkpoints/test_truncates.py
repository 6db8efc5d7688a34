"""Rows of a truncated table, wherever they stand: in `rows`, in the changelog, or in no place."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.maintenance.background import Maintenance
from checkpoints.reading.lookup import Images, between, blocked_up_to, forgotten, logged_rows
from checkpoints.reading.truncates import other_rows
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.model.change import RowKey
from streaming.core.model.row import Realign, RowState
from streaming.core.model.truncation import ALL_KEYS, Truncation
from tests.checkpoints.written_state import WrittenState, change_row
from tests.harness.builders import csn

LAST = 6
TRUNCATED = Truncation(2, 4, csn(4, 2))


def row_of(name: str, table: str = "t") -> RowKey:
    """The row with this name."""
    return table, f'{{"k":"{name}"}}'


def written(
    epoch: int, place: int, name: str, *, rid: int = 1, table: str = "t"
) -> dict[str, object]:
    """The changelog's row of an accepted change."""
    number = 10 * epoch + place
    row = change_row(epoch, epoch, place, csn(number, rid))
    key = row_of(name, table)[1]
    return {
        **row,
        "rid": rid,
        "table": table,
        "key": key,
        "op": "insert",
        "image": f'{{"v":"{number}"}}',
    }


def truncate(epoch: int, place: int, table: str = "t") -> dict[str, object]:
    """The changelog's row of an accepted truncate."""
    row = change_row(epoch, epoch, place, csn(epoch, 2))
    return {**row, "rid": 2, "table": table, "key": ALL_KEYS, "op": "truncate", "image": None}


def refresh(epoch: int, place: int, name: str, row_epoch: int) -> dict[str, object]:
    """The changelog's row of a refresh to replica 3, of a row that was written in `row_epoch`."""
    sent = {**written(epoch, place, name), "csn": csn(10 * row_epoch, 1)}
    more = {"to": 3, "row_epoch": row_epoch, "row_author": 1, "cause": "conflict", "offset": 7}
    return {**sent, "kind": "refresh", "verdict": None, **more}


BLOCKED = (Realign(3, 3, 7),)
STANDING = {
    row_of("old"): TRUNCATED.tombstone(RowState()),
    row_of("refreshed"): TRUNCATED.tombstone(RowState(realign=BLOCKED)),
    row_of("before"): TRUNCATED.tombstone(RowState()),
    row_of("sent before"): TRUNCATED.tombstone(RowState(realign=(Realign(3, 4, 7),))),
    row_of("behind"): RowState(1, 4, csn(44, 1), exists=True, image='{"v":"44"}'),
    row_of("later"): RowState(1, 5, csn(50, 1), exists=True, image='{"v":"50"}'),
    row_of("old", "u"): RowState(1, 1, csn(11, 1), exists=True, image='{"v":"11"}'),
}
"""The rows behind hub epoch LAST."""


@pytest.fixture
def state(tmp_path: Path) -> WrittenState:
    """Table t is truncated in hub epoch 4, which also holds rows before and behind that."""
    made = WrittenState(tmp_path).create()
    made.append(
        TableName.CHANGELOG,
        *(written(1, 0, "old"), written(1, 1, "old", table="u"), written(2, 0, "refreshed")),
        *(refresh(3, 0, "refreshed", 2), written(4, 0, "before"), refresh(4, 1, "sent before", 4)),
        *(written(4, 2, "behind", rid=2), truncate(4, 3), written(4, 4, "behind")),
        *(written(5, 0, "later"), truncate(6, 0, "it's \\n")),
    )
    return made


@pytest.mark.parametrize(
    "materialized",
    [
        0,
        pytest.param(1, marks=pytest.mark.slow),
        pytest.param(3, marks=pytest.mark.slow),
        4,
        pytest.param(5, marks=pytest.mark.slow),
        LAST,
    ],
)
def test_rows_stand_as_the_truncate_left_them(
    spark: SparkSession, state: WrittenState, materialized: int
) -> None:
    """However much of it `rows` has taken over, and in however many steps."""
    upkeep = Maintenance(spark, StateStore(state.root))
    for after, to in ((0, min(2, materialized)), (min(2, materialized), materialized)):
        upkeep.materialize(after, to).result()
    upkeep.close()

    found = forgotten(StateStore(state.root), STANDING, materialized, LAST, Images(0))

    assert found == STANDING


def test_a_window_is_rebuilt_with_the_tombstones_of_a_truncate(state: WrittenState) -> None:
    """A row that was written and truncated above its edge must not come back with a restart."""
    store = StateStore(state.root)

    found = logged_rows(store, between(0, LAST), blocked_up_to(store, 0, 0))

    assert found == {key: row._replace(image=None) for key, row in STANDING.items()}


def test_a_table_is_summed_up_for_who_truncates_it(
    spark: SparkSession, state: WrittenState
) -> None:
    """Of each author the newest version, and every realign; rows that are known are left out."""
    upkeep = Maintenance(spark, StateStore(state.root))
    upkeep.materialize(0, 2).result()
    upkeep.close()
    known = {row_of("behind")[1]}

    at_3 = other_rows(StateStore(state.root), "t", 2, 3, known.intersection)
    at_5 = other_rows(StateStore(state.root), "t", 2, 5, known.intersection)

    assert at_3 == [RowState(1, 2, csn(20, 1), exists=True), RowState(realign=BLOCKED)]
    mine, theirs, blocked = sorted(at_5, reverse=True)
    assert (mine.author, mine.hub_epoch, mine.csn) == (2, 4, csn(4, 2))
    assert (theirs.author, theirs.hub_epoch, theirs.csn) == (1, 5, csn(50, 1))
    assert blocked.realign == (Realign(3, 4, 7),)


@pytest.mark.parametrize(("purged", "newest"), [(5, csn(61, 1)), (6, csn(50, 1))])
def test_a_tombstone_that_may_be_purged_is_not_summed_up(
    state: WrittenState, purged: int, newest: str
) -> None:
    """Summed up, it would stand before an older row of its author, which the purge leaves."""
    state.append(TableName.CHANGELOG, {**written(6, 1, "gone"), "op": "delete", "image": None})

    found = other_rows(StateStore(state.root), "t", 0, LAST, lambda _: (), purged)

    assert [row.csn for row in found if row.author == 1] == [newest]
