"""The schemas that agents published: one record or two of each replica are read."""

import json
from collections.abc import Mapping
from typing import Any

from checkpoints.query import literal
from checkpoints.reading.newest_records import newest_records
from checkpoints.reading.reader import Reader
from streaming.core.records.record import RecordKind

_HAS_DOCUMENT = """regexp_like(value, '"document"\\s*:\\s*\\{')"""


def published_documents(reader: Reader) -> dict[int, Any]:
    """Rid -> the document of its last schema, as JSON has it; None: the hub does not have it.

    A record without one names that of an earlier record, and not always of the last that has one:
    a database that was restored has an earlier schema again.
    """
    last = newest_records(reader, RecordKind.SCHEMA)
    named = {rid: one["digest"] for rid, one in last.items() if not one.get("document")}
    condition = _has_document_of(named)
    earlier = newest_records(reader, RecordKind.SCHEMA, condition) if named else {}
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
