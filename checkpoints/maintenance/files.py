"""The files of the state: how many and how large those of each table are, and what is free."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from checkpoints.query import file_sizes
from checkpoints.reading.reader import Reader
from checkpoints.root import local_folder, written_s
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
    """The files of all tables, and the bytes of the disk of the state, or of a bucket's scratch."""

    tables: Mapping[TableName, TableFiles]
    free_bytes: int
    disk_bytes: int


def state_files(reader: Reader) -> StateFiles:
    """The files as they are now; opens each table that the reader has not, some milliseconds."""
    disk = shutil.disk_usage(local_folder(reader.root))
    found = {name: _table_files(reader, name) for name in TableName}
    return StateFiles(
        {name: one for name, one in found.items() if one is not None}, disk.free, disk.total
    )


def _table_files(reader: Reader, name: TableName) -> TableFiles | None:
    table = reader.table(name)
    if table is None:
        return None
    sizes = file_sizes(table).values()
    checkpoint_s = written_s(reader.root, f"{name}/{_LAST_CHECKPOINT}")
    return TableFiles(len(sizes), sum(sizes), checkpoint_s)
