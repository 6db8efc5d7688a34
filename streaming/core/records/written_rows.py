"""Whether a record that could not be processed may stand for a row that its replica wrote."""

from streaming.core.records.record import RecordKind

_WRITES_NONE = {*RecordKind} - {RecordKind.CHANGE, RecordKind.REFUSED, RecordKind.SNAPSHOT}


def writes_rows(kind: str | None) -> bool:
    """Return whether a record of this kind may; None: it could not be read that far."""
    return kind not in _WRITES_NONE
