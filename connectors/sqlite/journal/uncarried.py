"""The rows whose last write no replica can take: listed in the database until written again.

A write is in the list from the first of two moments on: its change is published, or a batch of the
hub is applied behind it, which may be about to write the row.
"""

import sqlite3
from collections.abc import Iterator

from connectors.agent.contract import UncarriedRow
from connectors.sqlite import sql
from connectors.sqlite.journal import entries as journal
from streaming.core.model.change import Change, Op
from streaming.core.model.truncation import ALL_KEYS


def note(connection: sqlite3.Connection, last: int | None = None) -> None:
    """List what the journal has up to this row (None: to its end), and strike out the corrected.

    In the caller's transaction, which also moves `noted`.
    """
    first, rid, is_any = connection.execute(
        "SELECT noted, rid, EXISTS (SELECT 1 FROM _slackwater_uncarried)"
        " FROM _slackwater_position, _slackwater_origin"
    ).fetchone()
    suspects = journal.changes_behind(connection, rid, first, last, journal.FAULTY)
    if not is_any and not any(entry.faults for entry in suspects):
        return
    for entry in journal.changes_behind(connection, rid, first, last):
        change = entry.record
        assert isinstance(change, Change)  # noqa: S101 only changes are read
        strike_out(connection, change.table, change.key)
        if entry.faults and change.op is not Op.DELETE:
            connection.execute(
                'INSERT INTO _slackwater_uncarried ("table", key, csn, faults, since)'  # noqa: S608
                f" VALUES (?, ?, ?, ?, {sql.NOW_MS})",
                (change.table, change.key, change.csn, "; ".join(entry.faults)),
            )


def strike_out(connection: sqlite3.Connection, table: str, key: str) -> None:
    """Take a row off the list, or all rows of a table."""
    connection.execute(
        'DELETE FROM _slackwater_uncarried WHERE "table" = ? AND (key = ? OR ? = ?)',
        (table, key, key, ALL_KEYS),
    )


def is_any(connection: sqlite3.Connection) -> bool:
    """Return whether a row is listed."""
    found = connection.execute("SELECT 1 FROM _slackwater_uncarried LIMIT 1").fetchone()
    return found is not None


def faults_of(connection: sqlite3.Connection, table: str, key: str) -> str | None:
    """Why the row is not replicated; None: it is not listed."""
    row = connection.execute(
        'SELECT faults FROM _slackwater_uncarried WHERE "table" = ? AND key = ?', (table, key)
    ).fetchone()
    return None if row is None else str(row[0])


def listed(connection: sqlite3.Connection, rows_max: int = -1) -> Iterator[UncarriedRow]:
    """The rows of the list, the oldest first; -1: all."""
    rows = connection.execute(
        'SELECT "table", key, csn, since, faults FROM _slackwater_uncarried'
        " ORDER BY since, rowid LIMIT ?",
        (rows_max,),
    )
    for row in rows:
        yield UncarriedRow(*row)


def count(connection: sqlite3.Connection) -> int:
    """How many rows are listed."""
    (found,) = connection.execute("SELECT count(*) FROM _slackwater_uncarried").fetchone()
    return int(found)
