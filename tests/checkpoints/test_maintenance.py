"""Small files become large ones once; a hub that holds the table open does not notice."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from checkpoints import maintenance
from checkpoints.maintenance import compact


def add(table: DeltaTable, number: int) -> None:
    """Append as a ledger does: a commit that is refused when another one came between."""
    mark = CommitProperties(app_transactions=[Transaction("epochs", number)])
    write_deltalake(table, pa.table({"n": [number]}), mode="append", commit_properties=mark)


def test_small_files_are_made_one_when_they_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost of a commit grows with the number of files."""
    monkeypatch.setattr(maintenance, "SMALL_FILES_MAX", 3)
    held = DeltaTable.create(tmp_path / "t", schema=pa.schema([("n", pa.int64())]))
    overtaken = DeltaTable(tmp_path / "t")
    for number in range(1, 4):
        add(held, number)
    compact(DeltaTable(tmp_path / "t"))
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 3

    add(held, 4)
    compact(DeltaTable(tmp_path / "t"))
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 1

    add(held, 5)
    with pytest.raises(CommitFailedError):
        add(overtaken, 1)
    assert sorted(DeltaTable(tmp_path / "t").to_pyarrow_table()["n"].to_pylist()) == [1, 2, 3, 4, 5]


def test_a_large_file_is_not_touched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the hundredth day would rewrite ninety-nine."""
    monkeypatch.setattr(maintenance, "SMALL_FILES_MAX", 2)
    table = DeltaTable.create(tmp_path / "t", schema=pa.schema([("n", pa.int64())]))
    write_deltalake(table, pa.table({"n": list(range(100_000))}), mode="append")
    (large,) = table.file_uris()
    monkeypatch.setattr(maintenance, "SMALL_BYTES", 10_000)
    for number in range(1, 5):
        add(table, number)

    compact(DeltaTable(tmp_path / "t"))

    files = DeltaTable(tmp_path / "t").file_uris()
    assert len(files) == 2
    assert large in files
