"""Records of a scenario as the facts that validation would deliver, without Spark."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from checkpoints.times import time_of
from connectors import wire
from streaming.core.model.change import Change
from streaming.core.model.table import Table
from streaming.core.records.kinds import KIND_OF
from streaming.core.records.record import ReceivedRecord
from streaming.stages.checked import CHECKED


def facts_from(received: Sequence[ReceivedRecord], tables: Mapping[str, Table]) -> pa.Table:
    """Records as CHECKED."""
    return pa.Table.from_pylist([_row(one, tables) for one in received], schema=CHECKED)


def _row(received: ReceivedRecord, tables: Mapping[str, Table]) -> dict[str, object]:
    record = received.record
    assert record is not None
    row: dict[str, object] = {
        "rid": received.rid,
        "offset": received.offset,
        "time": time_of(received.time_ms),
        "session": received.session,
        "kind": KIND_OF[type(record)].value,
        "reason": received.reason.value if received.reason else None,
        "detail": received.detail or None,
    }
    if not isinstance(record, Change):
        extra = {"prim_csn": getattr(record, "prim_csn", None)}
        return {**row, **extra, "value": wire.encode(received.session or "", record)}
    lacking = record.after is not None and len(
        wire.image_values(record.after, tables[record.table])
    ) < len(tables[record.table].columns)
    return {**row, **record._asdict(), "content": record.content, "partial": lacking}
