"""The schemas that agents published: one record or two of each replica are read."""

import json
from collections.abc import Mapping
from typing import Any

from checkpoints.query import equals, literal
from checkpoints.reading.reader import Reader
from checkpoints.tables import TableName
from streaming.core.model.foreign_json import loads

_NEWEST = """
    SELECT t.rid AS rid, t.value AS value FROM t JOIN (
        SELECT rid, batch, "offset", row_number() OVER (
            PARTITION BY rid ORDER BY batch DESC, "offset" DESC
        ) AS n FROM t WHERE {where}
    ) AS newest ON t.rid = newest.rid AND t.batch = newest.batch AND t."offset" = newest."offset"
    WHERE newest.n = 1 AND t.kind = 'schema'
"""
_HAS_DOCUMENT = """regexp_like(value, '"document"\\s*:\\s*\\{')"""


def published_documents(reader: Reader) -> dict[int, Any]:
    """Rid -> the document of its last schema, as JSON has it; None: the hub does not have it.

    A record without one names that of an earlier record, and not always of the last that has one:
    a database that was restored has an earlier schema again.
    """
    last = _newest(reader)
    named = {rid: one["digest"] for rid, one in last.items() if not one.get("document")}
    earlier = _newest(reader, _has_document_of(named)) if named else {}
    for rid, one in earlier.items():
        if one["digest"] == named[rid]:
            last[rid] = one
    return {rid: one.get("document") for rid, one in last.items()}


def _has_document_of(digests: Mapping[int, str]) -> str:
    """The condition that a record may have the document of its replica's digest."""
    of = (
        f"(rid = {rid} AND strpos(value, {literal(json.dumps(digest))}) > 0)"
        for rid, digest in digests.items()
    )
    return f"{_HAS_DOCUMENT} AND ({' OR '.join(of)})"


def _newest(reader: Reader, *conditions: str) -> dict[int, Any]:
    """Rid -> the newest record of its schema for which all of this holds, as JSON has it."""
    taken = equals({"kind": "schema", "outcome": "taken"})
    where = " AND ".join((*taken, f"batch <= {reader.batch}", *conditions))
    found = reader.query(TableName.EVENTS, _NEWEST.format(where=where))
    return {row["rid"]: loads(row["value"]) for row in found}
