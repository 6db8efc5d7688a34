"""The files of the state: how many and how large those of each table are, and what is free."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from checkpoints.query import open_table
from checkpoints.tables import TableName

_LAST_CHECKPOINT = "_delta_log/_last_checkpoint"


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The data files of a table's newest version; `checkpoint_s`: when its log got one, or None."""

    files: int
    bytes: int
    checkpoint_s: float | None


@dataclass(frozen=True, slots=True)
class StateFiles:
    """The files of all tables, and the bytes of the disk that they are on."""

    tables: Mapping[TableName, TableFiles]
    free_bytes: int
    disk_bytes: int


def state_files(root: Path) -> StateFiles:
    """The files as they are now; opens each table, which takes some milliseconds."""
    disk = shutil.disk_usage(root)
    found = {name: _table_files(root, name) for name in TableName}
    return StateFiles(
        {name: one for name, one in found.items() if one is not None}, disk.free, disk.total
    )


def _table_files(root: Path, name: TableName) -> TableFiles | None:
    table = open_table(root, name)
    if table is None:
        return None
    sizes = pa.table(table.get_add_actions(flatten=True)).column("size_bytes").to_pylist()
    checkpoint = root / name / _LAST_CHECKPOINT
    written_s = checkpoint.stat().st_mtime if checkpoint.exists() else None
    return TableFiles(len(sizes), sum(sizes), written_s)
