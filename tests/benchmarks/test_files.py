"""What the measure of the disk counts."""

from pathlib import Path

from deltalake import DeltaTable

from checkpoints.maintenance.background import DEAD_KEPT_S
from checkpoints.tables import TableName
from tests.benchmarks.files import disk_numbers, table_files
from tests.checkpoints.written_state import WrittenState


def test_dead_files_are_those_that_a_compaction_replaced(tmp_path: Path) -> None:
    """Live and dead together are what is on the disk."""
    state = WrittenState(tmp_path).create()
    for batch in range(1, 6):
        state.plan(batch)
    on_disk = sum(file.stat().st_size for file in (tmp_path / TableName.EPOCHS).glob("*.parquet"))
    assert table_files(tmp_path)[TableName.EPOCHS].dead == 0

    DeltaTable(tmp_path / TableName.EPOCHS).optimize.compact()

    found = table_files(tmp_path)
    epochs = found[TableName.EPOCHS]
    assert (epochs.live, epochs.dead, epochs.dead_bytes) == (1, 5, on_disk)
    numbers = disk_numbers(found, took_s=2 * DEAD_KEPT_S)
    assert numbers["epochs_dead_files_per_hour"] == 5 * 3_600 // DEAD_KEPT_S
    assert disk_numbers(found, took_s=60)["epochs_dead_files_per_hour"] == 5 * 60
