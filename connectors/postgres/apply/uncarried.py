"""The rows whose last write no replica can take: listed in the database until written again.

A write is listed when its change is published. The list is durable before the server may forget it.
"""

import time
from collections.abc import Iterable, Mapping, Sequence

from connectors.agent.contract import JournalEntry, UncarriedRow
from connectors.postgres.apply.rows import RowWriter
from connectors.postgres.apply.saved import faults_of
from connectors.postgres.sql import Session
from streaming.core.model.change import Change, Op
from streaming.core.model.truncation import ALL_KEYS


def concerns(session: Session, entries: Sequence[JournalEntry]) -> bool:
    """Return whether these entries may change the list."""
    return bool(entries) and (any(one.faults for one in entries) or is_any(session))


def note(
    session: Session,
    writers: Mapping[str, RowWriter],
    entries: Iterable[JournalEntry],
    record_bytes: int,
) -> None:
    """List what is published of rows that no replica can take, and strike out what is corrected.

    In the caller's transaction. A row that was written since is listed by what it is now, for a
    batch of the hub may have overwritten it.
    """
    for entry in entries:
        change = entry.record
        if not isinstance(change, Change):
            continue
        strike_out(session, change.table, change.key)
        writer = writers.get(change.table)
        if writer is None or not entry.faults or change.op is Op.DELETE:
            continue
        row = writer.rows(session, [writer.key(change.key)])
        if row and faults_of(writer, row[0], record_bytes):
            session.execute(
                'INSERT INTO slackwater.uncarried ("table", key, csn, since_ms, faults)'
                " VALUES (%s, %s, %s, %s, %s)",
                (change.table, change.key, change.csn, time.time_ns() // 10**6, _text(entry)),
            )


def strike_out(session: Session, table: str, key: str) -> None:
    """Take a row off the list, or all rows of a table."""
    session.execute(
        'DELETE FROM slackwater.uncarried WHERE "table" = %s AND (key = %s OR %s = %s)',
        (table, key, key, ALL_KEYS),
    )


def is_any(session: Session) -> bool:
    """Return whether a row is listed."""
    return session.execute("SELECT 1 FROM slackwater.uncarried LIMIT 1").fetchone() is not None


def first(session: Session) -> UncarriedRow | None:
    """The oldest row of the list; None: it is empty."""
    row = session.execute(
        'SELECT "table", key, csn, since_ms, faults FROM slackwater.uncarried'
        ' ORDER BY since_ms, "table", key LIMIT 1'
    ).fetchone()
    return None if row is None else UncarriedRow(*row)


def count(session: Session) -> int:
    """How many rows are listed."""
    (found,) = session.execute("SELECT count(*) FROM slackwater.uncarried").fetchone() or (0,)
    return int(found)


def _text(entry: JournalEntry) -> str:
    return "; ".join(entry.faults)
