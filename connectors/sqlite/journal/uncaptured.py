"""The tables that were written while a trigger was missing: listed until the hub copied them whole.

Nobody knows what was written, so as long as a table is listed its replica counts as one that has
something unpublished.
"""

import sqlite3
from collections.abc import Iterable, Sequence

from connectors.sqlite import sql
from streaming.core.records.record import Item, RangeItem


def begin(connection: sqlite3.Connection, lost: Iterable[str], configured: Sequence[str]) -> None:
    """List the tables that have lost triggers, leave out those not configured; in a transaction."""
    connection.executemany(
        'INSERT OR REPLACE INTO _slackwater_uncaptured ("table", since)'  # noqa: S608 a constant
        f" VALUES (?, {sql.NOW_MS})",
        [(table,) for table in lost],
    )
    for table in listed(connection):
        if table not in configured:
            connection.execute('DELETE FROM _slackwater_uncaptured WHERE "table" = ?', (table,))


def note_copied(connection: sqlite3.Connection, items: Iterable[Item | RangeItem]) -> list[str]:
    """Strike out the tables of which these items end a full copy, and name them; in a transaction.

    The ranges of a copy follow one another from the first, which has no beginning, to the last,
    which has no end (docs/protocol.md, Pages and ranges); a copy that had begun before is none.
    """
    tables = listed(connection)
    if not tables:
        return []
    done = list[str]()
    for item in items:
        if not isinstance(item, RangeItem) or item.table not in tables:
            continue
        if item.after is None:
            connection.execute(
                'UPDATE _slackwater_uncaptured SET is_copying = 1 WHERE "table" = ?', (item.table,)
            )
        if item.to is None:
            struck_out = connection.execute(
                'DELETE FROM _slackwater_uncaptured WHERE "table" = ? AND is_copying', (item.table,)
            )
            done += [item.table] if struck_out.rowcount else []
    return done


def listed(connection: sqlite3.Connection) -> list[str]:
    """The tables; none if the database was never a replica."""
    there = "SELECT 1 FROM sqlite_schema WHERE name = '_slackwater_uncaptured'"
    if not connection.execute(there).fetchone():
        return []
    rows = connection.execute('SELECT "table" FROM _slackwater_uncaptured ORDER BY 1')
    return [str(name) for (name,) in rows]
