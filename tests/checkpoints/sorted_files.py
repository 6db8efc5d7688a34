"""Rows as Spark leaves them when it has sorted them: a file for each part of the order."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq

from checkpoints.reading.resync_rows import SORTED, SortedRows
from streaming.core.tracking.ranges import KeyOrder
from tests.harness.builders import csn

ROW = {"author": 1, "hub_epoch": 3, "csn": csn(3), "image": "{}"}
"""What every row holds besides its key."""


def sorted_files(
    folder: Path,
    order: KeyOrder,
    *files: Sequence[str],
    tracked: Mapping[str, int] = MappingProxyType({}),
) -> SortedRows:
    """Rows with these keys, in a new folder; `tracked`: key -> the hub epoch of its version."""
    folder.mkdir()
    for place, keys in enumerate(files):
        rows = [{**ROW, "key": key, "tracked": tracked.get(key)} for key in keys]
        path = folder / f"part-{place:05}-of-a-job.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=SORTED), path)
    (folder / "_SUCCESS").touch()
    return SortedRows(folder.parent, folder.name, order)
