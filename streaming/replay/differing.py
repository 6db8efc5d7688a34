"""Follow the rows that replay has otherwise than the record: it must not look those up there."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.batch.sending import WHOLE
from streaming.core.conflict.judge import Verdict
from streaming.core.model.change import Op, RowKey
from streaming.core.model.row import Realign, RowState, refreshed
from streaming.core.model.row_name import SEPARATOR, text_of
from streaming.core.replay.compare import Difference, RecordedPart
from streaming.replay.past_hub import PastHub, RowPair
from streaming.stages.log import CHANGE, REFRESH

_OF_ROWS = (RecordedPart.CHANGE, RecordedPart.REFRESH)


def follow(
    hub: PastHub, recorded: pa.Table, replayed: pa.Table, found: Iterable[Difference]
) -> None:
    """Bring `hub.differing` behind a batch; `found`: in what its two changelogs differ.

    The hub itself is still before the batch.
    """
    fresh = {
        (one.table, one.key)
        for one in found
        if one.part in _OF_ROWS and one.table is not None and one.key is not None
    }
    touched = fresh | hub.differing.keys()
    if not touched:
        return
    mine, theirs = _of_rows(recorded, touched), _of_rows(replayed, touched)
    before = hub.rows([key for key in fresh if key not in hub.differing])
    for key in {*before, *mine, *theirs}:
        pair = hub.differing.get(key) or RowPair(before[key], before[key])
        pair = RowPair(_behind(pair.recorded, mine, key), _behind(pair.replayed, theirs, key))
        if pair.recorded == pair.replayed:
            hub.differing.pop(key, None)
        else:
            hub.differing[key] = pair


Entries = Mapping[RowKey, list[Mapping[str, Any]]]


def _of_rows(log: pa.Table, keys: Collection[RowKey]) -> Entries:
    """Row -> its entries in hub order."""
    names = pc.binary_join_element_wise(log["table"], log["key"], SEPARATOR)
    wanted = pa.array([text_of(key) for key in keys], pa.string())
    here = log.filter(pc.is_in(names, wanted)).sort_by("place")
    found = dict[RowKey, list[Mapping[str, Any]]]()
    for row in here.to_pylist():
        found.setdefault((row["table"], row["key"]), []).append(row)
    return found


def _behind(row: RowState, entries: Entries, key: RowKey) -> RowState:
    for entry in entries.get(key, ()):
        row = _after(row, entry)
    return row


def _after(row: RowState, entry: Mapping[str, Any]) -> RowState:
    exists, image = entry["op"] != Op.DELETE, entry["image"]
    epoch, csn = entry["hub_epoch"], entry["csn"]
    if entry["kind"] == REFRESH:
        sent = RowState(entry["rid"], entry["row_epoch"], csn, exists, image)
        realign = Realign(entry["to"], epoch, entry["offset"], entry["cause"] == WHOLE)
        return refreshed(row, sent, realign)
    if entry["kind"] == CHANGE and entry["verdict"] == Verdict.ACCEPTED:
        return RowState(entry["rid"], epoch, csn, exists, image, row.realign)
    return row
