"""The format of a state as its newest row says, read before anything of the state is touched.

True of every format: `epochs` has the columns batch, kind, hub_epoch and format, and a batch's
plan comes before its commit.
"""

from typing import NamedTuple

from checkpoints.commit.epochs import PLAN
from checkpoints.query import execute, open_table, records
from checkpoints.tables import TableName
from streaming.core.access.root import StateRoot

_NEWEST = f"""
    SELECT format, batch, kind = '{PLAN}' AS is_plan, hub_epoch FROM t
    ORDER BY batch DESC, is_plan LIMIT 1
"""  # noqa: S608


class Newest(NamedTuple):
    """The newest row of `epochs`; `is_plan`: its batch is not finished."""

    format: int
    batch: int
    is_plan: bool
    hub_epoch: int


def newest(root: StateRoot) -> Newest | None:
    """The newest row of `epochs`; None: no hub has committed here."""
    table = open_table(root, TableName.EPOCHS)
    found = [] if table is None else records(execute(table, _NEWEST))
    return Newest(**found[0]) if found else None
