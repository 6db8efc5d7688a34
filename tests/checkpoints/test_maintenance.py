"""Small files become large ones once; a hub that holds the table open does not notice."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from checkpoints import maintenance
from checkpoints.maintenance import Maintenance, compact
from checkpoints.store import Store
from checkpoints.tables import TableName
from streaming.core.errors import StateError
from tests.checkpoints.written_state import WrittenState, csn


def add(table: DeltaTable, number: int) -> None:
    """Append as a ledger does: a commit that is refused when another one came between."""
    mark = CommitProperties(app_transactions=[Transaction("epochs", number)])
    write_deltalake(table, pa.table({"n": [number]}), mode="append", commit_properties=mark)


def numbers(root: Path) -> list[int]:
    """What the table holds."""
    return sorted(DeltaTable(root / "t").to_pyarrow_table()["n"].to_pylist())


@pytest.fixture
def held(tmp_path: Path) -> DeltaTable:
    """A table as a hub holds it."""
    return DeltaTable.create(tmp_path / "t", schema=pa.schema([("n", pa.int64())]))


def test_small_files_are_made_one_when_they_are_many(
    spark: SparkSession, tmp_path: Path, held: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost of a commit grows with the number of files."""
    monkeypatch.setattr(maintenance, "SMALL_FILES_MAX", 3)
    overtaken = DeltaTable(tmp_path / "t")
    for number in range(1, 4):
        add(held, number)
    compact(spark, str(tmp_path / "t"))
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 3

    add(held, 4)
    compact(spark, str(tmp_path / "t"))
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 1

    add(held, 5)
    with pytest.raises(CommitFailedError):
        add(overtaken, 1)
    assert numbers(tmp_path) == [1, 2, 3, 4, 5]


def test_a_large_file_is_not_touched_again(
    spark: SparkSession, tmp_path: Path, held: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the hundredth day would rewrite ninety-nine."""
    monkeypatch.setattr(maintenance, "SMALL_FILES_MAX", 2)
    write_deltalake(held, pa.table({"n": list(range(100_000))}), mode="append")
    (large,) = held.file_uris()
    monkeypatch.setattr(maintenance, "SMALL_BYTES", 10_000)
    for number in range(1, 5):
        add(held, number)

    compact(spark, str(tmp_path / "t"))

    files = DeltaTable(tmp_path / "t").file_uris()
    assert len(files) == 2
    assert large in files


def test_two_hubs_that_compact_at_once_double_nothing(
    spark: SparkSession, tmp_path: Path, held: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One was overtaken and has not seen it yet: no row twice, and no reason to end."""
    monkeypatch.setattr(maintenance, "SMALL_FILES_MAX", 2)
    for number in range(1, 9):
        add(held, number)

    with ThreadPoolExecutor(4) as hubs:
        works = [hubs.submit(compact, spark, str(tmp_path / "t")) for _ in range(4)]
        for work in works:
            work.result()

    assert numbers(tmp_path) == list(range(1, 9))
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 1


def test_two_hubs_that_materialize_at_once_make_the_same_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The one that was overtaken must not bring down the one that is right."""
    state = WrittenState(tmp_path).create()
    written = [
        {
            "hub_epoch": epoch,
            "place": 0,
            "kind": "change",
            "verdict": "accepted",
            "rid": 1,
            "csn": csn(1, epoch),
            "table": "t",
            "key": f'{{"k":"{epoch % 3}"}}',
            "image": f'{{"k":"{epoch % 3}","v":"{epoch}"}}',
        }
        for epoch in range(1, 7)
    ]
    state.append(TableName.CHANGELOG, *written)
    hubs = [Maintenance(spark, Store(tmp_path)) for _ in range(3)]

    works = [hub.materialize(0, to) for hub, to in zip(hubs, (6, 6, 3), strict=True)]
    for work in works:
        work.result()
    for hub in hubs:
        hub.close()

    rows = DeltaTable(tmp_path / TableName.ROWS).to_pyarrow_table()
    assert sorted(rows["csn"].to_pylist()) == [csn(1, n) for n in (4, 5, 6)]


def test_work_that_the_disk_refuses_is_told_in_one_sentence(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What Java says of it fills pages."""
    state = WrittenState(tmp_path).create()
    state.append(TableName.CHANGELOG, {"hub_epoch": 1, "place": 0, "kind": "change"})
    (changes,) = DeltaTable(tmp_path / TableName.CHANGELOG).file_uris()
    Path(changes).unlink()
    hub = Maintenance(spark, Store(tmp_path))

    with pytest.raises(StateError, match="see to its disk") as told:
        hub.materialize(0, 1).result()

    hub.close()
    assert Path(changes).name in str(told.value)
    assert "\n" not in str(told.value)
