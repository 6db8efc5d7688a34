"""What a truncate meets and what it leaves: reads that concern a table as a whole."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain

import pyarrow.dataset as ds

from checkpoints import query
from checkpoints.reading.lookup import ACCEPTED, HUB_ORDER, between, logged_rows, materialized
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.conflict.truncate import summary
from streaming.core.model.row import RowState, without_tombstone
from streaming.core.model.truncation import ALL_KEYS, Truncation

Known = Callable[[Sequence[str]], Collection[str]]
"""Those of these keys that are known otherwise."""


def other_rows(
    store: StateStore,
    table: str,
    rows_epoch: int,
    edge: int,
    known: Known,
    tombstone_epoch: int = 0,
) -> list[RowState]:
    """What stands for the rows of a table as they were at hub epoch `edge`, without known keys.

    See `streaming/core/conflict/truncate.py`, `summary`. `rows` is materialized up to `rows_epoch`;
    it is read some thousand rows at a time. Tombstones up to `tombstone_epoch` may be purged, so
    they do not count.
    """
    where = between(rows_epoch, edge) & (ds.field("table") == table)
    found = logged_rows(store, where, {}) if edge > rows_epoch else {}
    gone = known([key for _, key in found])
    written = {key: row for (_, key), row in found.items() if key not in gone}
    rows = chain(written.values(), _older(store, table, known, written))
    return summary(without_tombstone(row, tombstone_epoch) for row in rows)


def _older(
    store: StateStore, table: str, known: Known, written: Collection[str]
) -> Iterator[RowState]:
    """The rows of `rows`; of those that were written since only the realigns."""
    here = query.equals({"table": table})
    for part in query.scan(store.table(TableName.ROWS), TableName.ROWS, where=here):
        gone = known(part["key"].to_pylist())
        for row in part.drop_columns(["image"]).to_pylist():
            if row["key"] not in gone:
                state = materialized({**row, "image": None})
                yield RowState(realign=state.realign) if row["key"] in written else state


def last_truncates(store: StateStore, after: int, to: int) -> dict[str, tuple[Truncation, int]]:
    """Table -> its last accepted truncate in the hub epochs (after, to], and its place."""
    where = between(after, to) & ACCEPTED & (ds.field("key") == ALL_KEYS)
    columns = ["table", "rid", "hub_epoch", "csn", "place"]
    ordered = store.read(TableName.CHANGELOG, where, columns).sort_by(HUB_ORDER)
    return {
        row["table"]: (Truncation(row["rid"], row["hub_epoch"], row["csn"]), row["place"])
        for row in ordered.to_pylist()
    }
