"""The format of a state as its newest row says, read before anything of the state is touched.

True of every format: `epochs` has the columns batch, kind and format.
"""

from checkpoints.query import execute, open_table, records
from checkpoints.tables import TableName
from streaming.core.access.root import StateRoot


def format_of(root: StateRoot) -> int | None:
    """The format of the newest batch; None: no hub has committed here."""
    table = open_table(root, TableName.EPOCHS)
    sql = "SELECT format FROM t ORDER BY batch DESC LIMIT 1"
    found = [] if table is None else records(execute(table, sql))
    return found[0]["format"] if found else None
