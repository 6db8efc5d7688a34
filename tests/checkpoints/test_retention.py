"""How far back a state can be judged again: what is purged must be in a version of `rows`."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from checkpoints.commit.recorded import batch_marks
from checkpoints.maintenance.background import Maintenance
from checkpoints.maintenance.pins import keep_pinned
from checkpoints.reading.as_of import rows_as_of, travel_to
from checkpoints.reading.past import PastStore, oldest_epoch
from checkpoints.store import StateStore, rows_of
from checkpoints.tables import TableName
from checkpoints.times import time_of
from streaming.core.model.command import CommandName
from streaming.core.model.errors import QuestionError
from streaming.core.replay.pins import Pin
from streaming.core.replay.span import Moment, span_of
from tests.checkpoints.test_maintenance import accepted
from tests.checkpoints.written_state import START_S, WrittenState, ruv


def purged_state(root: Path, purge_epoch: int) -> PastStore:
    """Five hub epochs, up to one of which the changelog is gone; `rows` follows two behind."""
    state = WrittenState(root).create()
    for number in range(1, 6):
        state.commit(
            number,
            number,
            ruv(r1=number),
            purge_epoch=purge_epoch if number == 5 else 0,
            versions={"rows": 0},
            rows_epoch=max(0, number - 2),
        )
    return PastStore(root)


@pytest.mark.parametrize(("purge_epoch", "oldest"), [(0, 1), (2, 5), (4, 6)])
def test_the_oldest_epoch_follows_from_what_is_purged(
    purge_epoch: int, oldest: int, tmp_path: Path
) -> None:
    """A replay from an incomplete state would find differences that are none."""
    store = purged_state(tmp_path, purge_epoch)

    assert oldest_epoch(store, batch_marks(store)) == oldest


def test_a_range_beyond_retention_is_refused_with_the_oldest_epoch(tmp_path: Path) -> None:
    """Who asks for too much is told what to ask for."""
    store = purged_state(tmp_path, 2)
    marks = batch_marks(store)

    with pytest.raises(QuestionError, match="the oldest one that can be judged again is 5"):
        span_of(marks, Moment("3", hub_epoch=3), None, lambda _: None, oldest_epoch(store, marks))


def test_the_window_is_that_of_the_last_start(tmp_path: Path) -> None:
    """Log, replaced files and VACUUM of the full state follow from one setting."""
    for hours in (168, 720):
        store = StateStore(tmp_path, hours)
        store.create()
        keep_pinned(store, START_S * 1000)

    found = DeltaTable(tmp_path / TableName.ROWS).metadata().configuration

    assert found["delta.logRetentionDuration"] == "interval 720 hours"
    assert found["delta.deletedFileRetentionDuration"] == "interval 720 hours"


def travelled_state(root: Path, spark: SparkSession) -> None:
    """Four hub epochs, two in each version of `rows`; the changelog of the first two is purged."""
    state, hub = WrittenState(root).create(), Maintenance(spark, StateStore(root))
    for number in range(1, 5):
        state.append(TableName.CHANGELOG, *(accepted(number, n, n) for n in range(3)))
        if number % 2 == 0:
            hub.materialize(number - 2, number).result()
        state.commit(
            number,
            number,
            ruv(r1=number),
            purge_epoch=2 if number == 4 else 0,
            versions={"rows": DeltaTable(root / TableName.ROWS).version()},
            rows_epoch=number - number % 2,
        )
    hub.close()
    spark.sql(f"OPTIMIZE delta.`{root / TableName.ROWS}`")
    DeltaTable(root / TableName.CHANGELOG).delete("hub_epoch <= 2")


def values_at(root: Path, hub_epoch: int) -> list[str]:
    """The values of the rows as they stood."""
    store = PastStore(root)
    travel_to(store, batch_marks(store), Moment(str(hub_epoch), hub_epoch=hub_epoch))
    images = rows_as_of(store, "t", hub_epoch)["image"].to_pylist()
    store.close()
    return [json.loads(image)["v"] for image in images]


@pytest.mark.more
@pytest.mark.parametrize("is_pinned", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_far_end_of_the_window_is_there_after_optimize_purge_and_vacuum(
    tmp_path: Path, spark: SparkSession, *, is_pinned: bool
) -> None:
    """Behind it a pinned hub epoch alone; who asks for another is told the oldest one."""
    travelled_state(tmp_path, spark)
    if is_pinned:
        pin(tmp_path, 2)
    inside = Maintenance(spark, StateStore(tmp_path, kept_hours=1))
    inside.vacuum().result()
    inside.close()
    within = values_at(tmp_path, 2)

    behind = Maintenance(spark, StateStore(tmp_path, kept_hours=0))
    behind.vacuum().result()
    behind.close()

    assert within == ["2"] * 3
    assert values_at(tmp_path, 4) == ["4"] * 3
    if is_pinned:
        assert values_at(tmp_path, 2) == ["2"] * 3
    else:
        with pytest.raises(QuestionError, match="the oldest one that can be shown is 4"):
            values_at(tmp_path, 2)


def pin(root: Path, hub_epoch: int) -> None:
    """Pin a hub epoch."""
    row = {"number": 1, "kind": "command", "at": time_of(0), "seen": 0}
    row |= {"command": CommandName.PIN, "argument": Pin("audit", hub_epoch, 0).text()}
    rows = rows_of(TableName.CONFIG, [row])
    StateStore(root).append_once(TableName.CONFIG, rows, "config", 1)
