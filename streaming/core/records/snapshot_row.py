"""A row of a snapshot: on the wire an object of its own, to the rules a change that inserts."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from streaming.core.model.change import Op
from streaming.core.records.form import has_id
from streaming.core.records.members import Fields
from streaming.core.records.record import RecordKind

MEMBERS = ("csn", "epoch", "opno", "table", "key", "after")
"""What a row has besides the id of its snapshot."""


class SnapshotRow(NamedTuple):
    """The members of a row as those of a change, and the id of its snapshot."""

    fields: Fields
    id: str


def snapshot_row(fields: Fields) -> SnapshotRow | None:
    """Return the row that a record of kind `snapshot` holds; None: it is another record."""
    row = fields.get("row")
    if fields.get("kind") != RecordKind.SNAPSHOT or not isinstance(row, dict) or not has_id(row):
        return None
    return SnapshotRow(_as_change(fields, row), row["id"])


def _as_change(fields: Fields, row: Mapping[str, Any]) -> Fields:
    around = {name: fields[name] for name in ("v", "session") if name in fields}
    inside = {name: row[name] for name in MEMBERS if name in row}
    return {**around, **inside, "kind": RecordKind.CHANGE.value, "op": Op.INSERT.value}
