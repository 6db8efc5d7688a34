"""The writes that stay in this database, by table, as the checkpoint of the log counts them.

They are added in the transaction that stores a checkpoint behind them, so none counts twice when
the log is read again. The time is when that was: the log has none of a session with an origin.
"""

import time
from collections.abc import Mapping

from connectors.postgres.sql import Session
from streaming.core.records.local_writes import TableWrites


def read(session: Session) -> dict[str, TableWrites]:
    """Table -> its writes that stay here, of those that have some."""
    rows = session.execute('SELECT "table", rows, last_ms FROM slackwater.local_writes ORDER BY 1')
    return {table: TableWrites(count, last_ms) for table, count, last_ms in rows.fetchall()}


def add(session: Session, staying: Mapping[str, int]) -> None:
    """Add these rows, table -> how many, to what is stored; in a transaction."""
    now_ms = time.time_ns() // 1_000_000
    for table, rows in staying.items():
        session.execute(
            'INSERT INTO slackwater.local_writes AS l ("table", rows, last_ms) VALUES (%s, %s, %s)'
            ' ON CONFLICT ("table") DO UPDATE SET rows = l.rows + EXCLUDED.rows,'
            " last_ms = EXCLUDED.last_ms",
            (table, rows, now_ms),
        )
