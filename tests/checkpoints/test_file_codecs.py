"""How the file of an append is compressed: by how much there is."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from checkpoints.root import open_delta
from checkpoints.store import SMALL_ROWS_BYTES, StateStore, rows_of
from checkpoints.tables import TableName

LARGE = "x" * SMALL_ROWS_BYTES


@pytest.mark.parametrize(("document", "codec"), [("x", "SNAPPY"), (LARGE, "ZSTD")])
def test_zstd_is_for_what_it_makes_smaller(tmp_path: Path, document: str, codec: str) -> None:
    """One row may be large, as one of many replicas, or of a change that waits."""
    store = StateStore(tmp_path)
    store.create()

    store.append_once(
        TableName.CONFIG, rows_of(TableName.CONFIG, [{"number": 1, "document": document}]), "k", 1
    )

    table = open_delta(tmp_path, TableName.CONFIG)
    (file,) = table.file_uris()
    chunk = pq.read_metadata(file).row_group(0).column(0)
    assert chunk.compression == codec
    assert store.refreshed(TableName.CONFIG).to_pyarrow_table()["document"].to_pylist() == [
        document
    ]
