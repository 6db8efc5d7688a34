"""The files of a state's tables on disk: those of the newest version, and dead ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from checkpoints.maintenance.background import DEAD_KEPT_S
from checkpoints.tables import TableName

MIB = 2**20


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The data files of one table, in number and in bytes."""

    live: int
    live_bytes: int
    dead: int
    dead_bytes: int


def table_files(state: Path) -> dict[TableName, TableFiles]:
    """The files of each table under this state root."""
    return {name: _files(state / name) for name in TableName}


def _files(folder: Path) -> TableFiles:
    bytes_of = {file.name: file.stat().st_size for file in folder.glob("*.parquet")}
    live = {Path(uri).name for uri in DeltaTable(folder).file_uris()}
    live_bytes = sum(bytes_of[name] for name in live)
    return TableFiles(
        len(live), live_bytes, len(bytes_of) - len(live), sum(bytes_of.values()) - live_bytes
    )


def disk_numbers(found: Mapping[TableName, TableFiles], took_s: float) -> dict[str, object]:
    """What `epochs` and all tables hold after so long, and what becomes dead in an hour.

    Dead files are on disk for `DEAD_KEPT_S`, so `dead_kept_mib` is the most that they take there at
    this rate of batches, however long it lasts.
    """
    per_s = 1 / min(took_s, DEAD_KEPT_S)
    epochs, dead_bytes = found[TableName.EPOCHS], sum(one.dead_bytes for one in found.values())
    return {
        "epochs_live_files": epochs.live,
        "epochs_live_mib": round(epochs.live_bytes / MIB, 1),
        "epochs_dead_files_per_hour": round(epochs.dead * per_s * 3_600),
        "epochs_dead_mib_per_hour": round(epochs.dead_bytes / MIB * per_s * 3_600),
        "live_mib": round(sum(one.live_bytes for one in found.values()) / MIB, 1),
        "dead_mib_per_hour": round(dead_bytes / MIB * per_s * 3_600),
        "dead_kept_mib": round(dead_bytes / MIB * per_s * DEAD_KEPT_S),
    }
