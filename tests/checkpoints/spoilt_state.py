"""A record of 100 MB blanks in quarantine, as a hub without bounds left it."""

from collections.abc import Mapping
from pathlib import Path

from deltalake import WriterProperties, write_deltalake

from checkpoints.store import rows_of
from checkpoints.tables import TableName

LARGER_THAN_ARROW_READS = 100_000_001
"""Bytes of one value in a footer, unless it is allowed more."""

_AS_EARLIER = WriterProperties(compression="ZSTD", compression_level=1)
"""Without a bound of the statistics."""


def spoil(root: Path, **row: object) -> None:
    """Append such a record to the quarantine of a state; `row`: its other columns."""
    kept: Mapping[str, object] = {
        "action": "kept",
        "reason": "size",
        "detail": "too large",
        "value": b" " * LARGER_THAN_ARROW_READS,
        **row,
    }
    path = root / TableName.QUARANTINE
    known = {*path.glob("*.parquet")}
    made = rows_of(TableName.QUARANTINE, [kept])
    write_deltalake(path, made, mode="append", writer_properties=_AS_EARLIER)
    (file,) = {*path.glob("*.parquet")} - known
    assert file.stat().st_size > LARGER_THAN_ARROW_READS, "its footer has the value"
