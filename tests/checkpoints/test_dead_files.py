"""Files that a compaction replaced go after ten minutes, and no others."""

import multiprocessing
import os
import signal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from checkpoints.maintenance import background as maintenance
from checkpoints.maintenance.background import (
    CHECKPOINT_EVERY_COMMITS,
    DEAD_KEPT_S,
    DeadFiles,
    Maintenance,
)
from checkpoints.store import StateStore, rows_of
from checkpoints.tables import TableName
from tests.checkpoints.written_state import WrittenState

ROWS = 30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table of thirty small files."""
    table = DeltaTable.create(tmp_path / "t", schema=pa.schema([("n", pa.int64())]))
    for number in range(ROWS):
        write_deltalake(table, pa.table({"n": [number]}), mode="append")
    return tmp_path / "t"


def numbers(table: DeltaTable) -> list[int]:
    """What the table holds at the version that it was opened at."""
    return sorted(table.to_pyarrow_table()["n"].to_pylist())


def data_files(folder: Path) -> set[str]:
    """The data files on disk."""
    return {file.name for file in folder.glob("*.parquet")}


def live_files(folder: Path) -> set[str]:
    """The data files of the newest version."""
    return {Path(uri).name for uri in DeltaTable(folder).file_uris()}


def compacted(folder: Path) -> DeltaTable:
    """The table after a compaction."""
    table = DeltaTable(folder)
    table.optimize.compact()
    return table


def test_a_reader_has_ten_minutes_for_the_version_that_it_opened(folder: Path) -> None:
    """A command that was called just before a compaction must not fail in the middle."""
    reader = DeltaTable(folder)
    table, dead = compacted(folder), DeadFiles()

    dead.remove(folder.parent, folder.name, table, now_s=1_000)
    dead.remove(folder.parent, folder.name, table, now_s=1_000 + DEAD_KEPT_S - 1)
    assert numbers(reader) == list(range(ROWS))

    dead.remove(folder.parent, folder.name, table, now_s=1_000 + DEAD_KEPT_S)
    assert data_files(folder) == live_files(folder)
    assert numbers(DeltaTable(folder)) == list(range(ROWS))


def test_a_file_that_is_being_appended_is_left_alone(folder: Path) -> None:
    """It is in no log yet: an append may be suspended for any time before it is committed."""
    (folder / "part-of-an-append.parquet").write_bytes(b"not committed yet")
    table, dead = compacted(folder), DeadFiles(kept_s=0)

    dead.remove(folder.parent, folder.name, table, now_s=0)

    assert data_files(folder) == live_files(folder) | {"part-of-an-append.parquet"}


def test_what_an_earlier_hub_left_goes_too(folder: Path) -> None:
    """A hub that died remembers nothing: the log, its checkpoint included, names the files."""
    table = compacted(folder)
    DeadFiles().remove(folder.parent, folder.name, table, now_s=0)
    table.cleanup_metadata()
    table.create_checkpoint()

    later = DeadFiles()
    later.remove(folder.parent, folder.name, DeltaTable(folder), now_s=5_000)
    assert len(data_files(folder)) == ROWS + 1

    later.remove(folder.parent, folder.name, DeltaTable(folder), now_s=5_000 + DEAD_KEPT_S)
    assert data_files(folder) == live_files(folder)


def die_in_the_middle(folder: Path) -> None:
    """Remove some of the replaced files, then be killed."""
    unlink = Path.unlink
    left = [ROWS // 3]

    def unlink_until_killed(file: Path, *, missing_ok: bool = False) -> None:
        unlink(file, missing_ok=missing_ok)
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    Path.unlink = unlink_until_killed  # type: ignore[assignment, method-assign]
    DeadFiles(kept_s=0).remove(folder.parent, folder.name, DeltaTable(folder), now_s=0)


def test_kill_9_in_the_middle_does_no_harm(folder: Path) -> None:
    """The table reads as before, and the next hub removes the rest."""
    compacted(folder)
    child = multiprocessing.get_context("spawn").Process(target=die_in_the_middle, args=(folder,))
    child.start()
    child.join(120)

    assert child.exitcode == -signal.SIGKILL
    assert len(data_files(folder)) == ROWS + 1 - ROWS // 3
    assert numbers(DeltaTable(folder)) == list(range(ROWS))
    DeadFiles(kept_s=0).remove(folder.parent, folder.name, DeltaTable(folder), now_s=0)
    assert data_files(folder) == live_files(folder)


def test_maintenance_keeps_the_disk_near_what_is_live(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub that writes two files a batch to `epochs` would fill the disk within days."""
    monkeypatch.setattr(maintenance, "SMALL_FILES_MAX", 10)
    WrittenState(tmp_path).create()
    store = StateStore(tmp_path)
    hub = Maintenance(spark, StateStore(tmp_path), dead_kept_s=0)
    folder = tmp_path / TableName.EPOCHS

    for number in range(1, 4 * CHECKPOINT_EVERY_COMMITS + 1):
        row = rows_of(TableName.EPOCHS, [{"kind": "plan", "batch": number}])
        assert store.append_once(TableName.EPOCHS, row, "epochs", number)
        if number % CHECKPOINT_EVERY_COMMITS == 0:
            hub.maintain().result()
            store.reopen()
    hub.close()

    assert data_files(folder) == live_files(folder)
    assert len(live_files(folder)) == 1
    batches = DeltaTable(folder).to_pyarrow_table()["batch"].to_pylist()
    assert sorted(batches) == list(range(1, 4 * CHECKPOINT_EVERY_COMMITS + 1))


def test_the_log_forgets_removed_files_after_an_hour(tmp_path: Path) -> None:
    """Each checkpoint names what it remembers: a week of a busy hub would be millions of files."""
    old = {"delta.logRetentionDuration": "interval 3 minutes"}
    schema = pa.schema([("batch", pa.int64())])
    DeltaTable.create(tmp_path / TableName.EVENTS, schema=schema, configuration=old)

    StateStore(tmp_path).create()

    for name in (TableName.EVENTS, TableName.EPOCHS):
        settings = DeltaTable(tmp_path / name).metadata().configuration
        assert settings["delta.deletedFileRetentionDuration"] == "interval 1 hours"
    assert DEAD_KEPT_S < 3_600
