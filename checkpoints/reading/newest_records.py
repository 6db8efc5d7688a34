"""The newest record of a kind of each replica, of those that the hub keeps and does not judge."""

from typing import Any

from checkpoints.query import equals
from checkpoints.reading.reader import Reader
from checkpoints.tables import TableName
from streaming.core.model.foreign_json import loads
from streaming.core.records.record import RecordKind

_NEWEST = """
    SELECT t.rid AS rid, t.value AS value FROM t JOIN (
        SELECT rid, batch, "offset", row_number() OVER (
            PARTITION BY rid ORDER BY batch DESC, "offset" DESC
        ) AS n FROM t WHERE {where}
    ) AS newest ON t.rid = newest.rid AND t.batch = newest.batch AND t."offset" = newest."offset"
    WHERE newest.n = 1 AND t.kind = '{kind}'
"""


def newest_records(reader: Reader, kind: RecordKind, *conditions: str) -> dict[int, Any]:
    """Rid -> its newest record of the kind for which all of this holds, as JSON has it."""
    taken = equals({"kind": kind.value, "outcome": "taken"})
    where = " AND ".join((*taken, f"batch <= {reader.batch}", *conditions))
    found = reader.query(TableName.EVENTS, _NEWEST.format(where=where, kind=kind))
    return {row["rid"]: loads(row["value"]) for row in found}
