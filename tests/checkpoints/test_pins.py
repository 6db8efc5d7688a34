"""What a pin keeps of `rows`, and what goes when it is gone."""

from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from checkpoints.maintenance import Maintenance
from checkpoints.past import readable_version
from checkpoints.store import StateStore, rows_of
from checkpoints.tables import TableName
from checkpoints.times import time_of
from streaming.core.model.command import CommandName
from streaming.core.replay.pins import Pin
from tests.checkpoints.test_maintenance import accepted
from tests.checkpoints.written_state import WrittenState


def order(root: Path, number: int, command: CommandName, argument: str) -> None:
    """Append an operator's command."""
    row = {"number": number, "kind": "command", "command": command, "argument": argument}
    row |= {"at": time_of(number), "seen": 0}
    StateStore(root).append_once(
        TableName.CONFIG, rows_of(TableName.CONFIG, [row]), "config", number
    )


def test_vacuum_spares_what_is_pinned_until_it_is_unpinned(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Behind a window of no hours: a pinned version can be read, and without its pin it is gone."""
    state = WrittenState(tmp_path).create()
    store = StateStore(tmp_path, kept_hours=0)
    hub = Maintenance(spark, store)
    state.append(TableName.CHANGELOG, *(accepted(1, n, n) for n in range(10)))
    hub.materialize(0, 1).result()
    pinned = DeltaTable(tmp_path / TableName.ROWS).version()
    state.append(TableName.CHANGELOG, *(accepted(2, n, n) for n in range(10)))
    hub.materialize(1, 2).result()
    spark.sql(f"OPTIMIZE delta.`{tmp_path / TableName.ROWS}`")

    order(tmp_path, 1, CommandName.PIN, Pin("audit", 1, 0).text())
    hub.vacuum().result()
    spared = readable_version(tmp_path, pinned)
    order(tmp_path, 2, CommandName.UNPIN, "audit")
    hub.vacuum().result()
    hub.close()

    assert spared is not None
    assert readable_version(tmp_path, pinned) is None
