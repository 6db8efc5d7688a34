"""The rows that a consumer lacks, of the changelog."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.model.row import Floor
from streaming.core.model.ruv import Ruv
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.state.topology import Subscription
from streaming.stages.checked import bools, ints
from streaming.stages.recipients import COLUMNS, Recipients

TRACKED_COLUMNS = (*COLUMNS, "key", "hub_epoch", "row_epoch")
"""What `tracked_rows` needs of the changelog."""

TRACKED_ROWS = pa.schema(
    [
        ("table", pa.string()),
        ("key", pa.string()),
        ("tracked", pa.int64()),  # the hub epoch of the version
    ]
)


def tracked_rows(
    log: pa.Table, subscription: Subscription, ruv: Ruv, floors: Iterable[Floor]
) -> pa.Table:
    """Return TRACKED_ROWS of changelog rows, each row once.

    `log`: TRACKED_COLUMNS, and those of the agreement's filters (stages/filtered.py).
    """
    recipients = Recipients(log)
    sent = recipients.of(subscription, ruv, floors)
    version = np.where(recipients.is_change, ints(log["hub_epoch"]), ints(log["row_epoch"]))
    sent = sent & ~bools(pc.equal(log["key"], ALL_KEYS))
    found = log.select(["table", "key"]).append_column("tracked", pa.array(version))
    return newest([found.filter(pa.array(sent))])


def newest(parts: Iterable[pa.Table]) -> pa.Table:
    """Return TRACKED_ROWS of several, each row once, with its newest version."""
    rows = pa.concat_tables([TRACKED_ROWS.empty_table(), *(p.cast(TRACKED_ROWS) for p in parts)])
    grouped = rows.group_by(["table", "key"]).aggregate([("tracked", "max")])
    return grouped.rename_columns({"tracked_max": "tracked"}).select(TRACKED_ROWS.names)


def of_table(rows: pa.Table, table: str) -> pa.Table:
    """Return the rows of one table, without its name."""
    return rows.filter(pc.equal(rows["table"], table)).select(["key", "tracked"])
