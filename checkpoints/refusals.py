"""Refused rows as rows of `conflicts`: written when one changes, read back when a hub starts."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from checkpoints.store import StateStore, rows_of
from checkpoints.tables import TableName
from checkpoints.times import ms_of, time_of
from streaming.core.conflict.judge import ConflictKind
from streaming.core.intake.refused_rows import RefusedRows
from streaming.core.model.change import NOBODY, RowKey
from streaming.core.model.csn import rid_of
from streaming.core.model.refusal import Refusal, Refusals

OPEN = "open"


def conflicts(refused: RefusedRows, names: Mapping[int, str], batch: int, at_ms: int) -> pa.Table:
    """The rows for `conflicts`: what a batch made of the refused rows; `names`: rid -> name."""
    found: Iterable[tuple[Refusal, str]] = [
        *((one, ending.value) for one, ending in refused.ended),
        *((one, OPEN) for one in refused.changed()),
    ]
    rows = [{**_row(one, names), "resolution": how, "batch": batch} for one, how in found]
    return rows_of(TableName.CONFLICTS, [{**row, "at": time_of(at_ms)} for row in rows])


def load(store: StateStore, batch: int) -> Refusals:
    """The open refusals after this batch."""
    where = (ds.field("kind") == ConflictKind.REFUSED.value) & (ds.field("batch") <= batch)
    newest = {
        row["id"]: row
        for row in store.read(TableName.CONFLICTS, where).sort_by("batch").to_pylist()
    }
    found: dict[int, dict[RowKey, Refusal]] = {}
    for row in newest.values():
        if row["resolution"] == OPEN:
            one = _refusal(row)
            found.setdefault(one.rid, {})[one.row] = one
    return found


def _row(refusal: Refusal, names: Mapping[int, str]) -> dict[str, object]:
    """The replica is the loser: it lacks the winner, which stands at the hub."""
    author = rid_of(refusal.csn) or NOBODY
    table, key = refusal.row
    return {
        "hub_epoch": refusal.hub_epoch,
        "id": refusal.id,
        "kind": ConflictKind.REFUSED.value,
        "table": table,
        "key": key,
        "loser_rid": refusal.rid,
        "loser": names.get(refusal.rid),
        "winner_csn": refusal.csn,
        "winner_rid": author,
        "winner": names.get(author),
        "time": time_of(refusal.time_ms),
        "offset": refusal.offset,
        "code": refusal.code,
        "text": refusal.text,
        "attempts": refusal.attempts,
        "sent_epoch": refusal.sent_epoch,
    }


def _refusal(row: Mapping[str, Any]) -> Refusal:
    return Refusal(
        row["id"],
        row["loser_rid"],
        (row["table"], row["key"]),
        row["hub_epoch"],
        row["winner_csn"],
        row["code"],
        row["text"],
        row["offset"],
        ms_of(row["time"]),
        row["attempts"],
        row["sent_epoch"],
        ms_of(row["at"]),
    )
