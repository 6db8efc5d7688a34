"""Records of a scenario as the facts that validation would deliver, without Spark."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from checkpoints.epochs import time_of
from connectors import wire
from streaming.core.change import Change
from streaming.core.record import Said
from streaming.core.table import Table
from streaming.stages.facts import FACTS


def facts_from(said: Sequence[Said], tables: Mapping[str, Table]) -> pa.Table:
    """Said records as FACTS."""
    return pa.Table.from_pylist([_row(one, tables) for one in said], schema=FACTS)


def _row(said: Said, tables: Mapping[str, Table]) -> dict[str, object]:
    record = said.record
    assert record is not None
    row: dict[str, object] = {
        "rid": said.rid,
        "offset": said.offset,
        "time": time_of(said.time_ms),
        "session": said.session,
        "kind": wire.kind_of(record).value,
        "reason": said.reason.value if said.reason else None,
        "detail": said.detail or None,
    }
    if not isinstance(record, Change):
        told = {"prim_csn": getattr(record, "prim_csn", None)}
        return {**row, **told, "value": wire.encode(said.session or "", record)}
    lacking = record.after is not None and len(
        wire.image_values(record.after, tables[record.table])
    ) < len(tables[record.table].columns)
    return {**row, **record._asdict(), "content": record.content, "partial": lacking}
