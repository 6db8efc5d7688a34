"""Writes that stay in one replica's database, by table: what its agent tells, as text and back."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from streaming.core.model.values import json_text

MAX_MS = 253_402_300_799_000
"""The end of the year 9999: who tells a later time has no clock."""


@dataclass(frozen=True, slots=True)
class TableWrites:
    """How many rows of a table were written so in all, and when the last one was, since 1970."""

    rows: int
    last_ms: int


def tables_text(found: Mapping[str, TableWrites]) -> str:
    """The member `tables` of a record `local_writes` (docs/wire.md), by the tables' names."""
    return json_text({name: asdict(one) for name, one in sorted(found.items())})


def parse_tables(found: Mapping[str, Mapping[str, int]]) -> dict[str, TableWrites]:
    """Table -> its writes, of what JSON has in the place of `tables_text`."""
    return {
        name: TableWrites(one["rows"], min(one["last_ms"], MAX_MS)) for name, one in found.items()
    }
