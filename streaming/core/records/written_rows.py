"""Whether a record that could not be processed may stand for a row that its replica wrote."""

from collections.abc import Mapping

from streaming.core.model.foreign_json import loads
from streaming.core.records.record import RecordKind

_WRITES_ROWS = {RecordKind.CHANGE, RecordKind.REFUSED, RecordKind.SNAPSHOT}
_WRITES_NONE = {*RecordKind} - _WRITES_ROWS


def kind_writes_rows(kind: str | None) -> bool:
    """Return whether a record of this kind may; None: it could not be read that far."""
    return kind not in _WRITES_NONE


def writes_rows(value: bytes | None) -> bool:
    """Return whether a record of these bytes may: all but a readable control record."""
    try:
        record = loads(value or b"")
    except ValueError:
        return True
    kind = record.get("kind") if isinstance(record, Mapping) else None
    return kind_writes_rows(kind if isinstance(kind, str) else None)
