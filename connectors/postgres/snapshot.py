"""The rows that a database had before it was captured: told through the log, in key ranges.

A range is read under a lock that waits for its writers and keeps them out until the commit, and is
emitted as a message of the same transaction: so its rows are true at that place of the log. A
killed agent goes on behind the last range.
"""
# ruff: noqa: S608 every name is quoted

import uuid
from collections.abc import Iterable, Mapping

from connectors.postgres.apply.rows import RowWriter
from connectors.postgres.messages import SnapshotRows, emit, stamp
from connectors.postgres.sql import Session, name, texts
from connectors.postgres.values.image import image
from streaming.core.records.record import Snapshot

BEGIN, END = "begin", "end"


def begin(session: Session, tables: Iterable[str]) -> None:
    """Note that the rows of these tables are to be told, in one snapshot."""
    id_ = _new_id()
    for table in tables:
        session.execute(
            'INSERT INTO slackwater.snapshot ("table", id) VALUES (%s, %s)', (table, id_)
        )


def begin_again(session: Session, tables: Iterable[str]) -> None:
    """Forget what is told of a snapshot, and begin another one, of these tables."""
    session.execute("DELETE FROM slackwater.snapshot")
    begin(session, tables)


def begin_with(session: Session, tables: Iterable[str]) -> None:
    """Have the rows of these tables told again, in the snapshot that is being told, if one is."""
    row = session.execute("SELECT id FROM slackwater.snapshot WHERE told >= 0 LIMIT 1").fetchone()
    id_ = row[0] if row else _new_id()
    for table in tables:
        session.execute(
            'INSERT INTO slackwater.snapshot ("table", id) VALUES (%s, %s) ON CONFLICT ("table")'
            " DO UPDATE SET id = EXCLUDED.id, last = NULL, told = 0, is_complete = false",
            (table, id_),
        )


def _new_id() -> str:
    return uuid.uuid4().hex[:16]


def named(session: Session) -> str | None:
    """The id of the snapshot whose end is not known to be in the topic; None: there is none."""
    row = session.execute("SELECT id FROM slackwater.snapshot ORDER BY told < 0 LIMIT 1").fetchone()
    return None if row is None else str(row[0])


def forget(session: Session) -> None:
    """Forget a snapshot whose end is in the topic."""
    session.execute("DELETE FROM slackwater.snapshot WHERE is_complete AND told < 0")


def tell(session: Session, writers: Mapping[str, RowWriter], rows_max: int) -> bool:
    """Tell the next rows in one transaction, in a session of the own origin; False: all are."""
    row = session.execute(
        'SELECT "table", id, last, told FROM slackwater.snapshot WHERE NOT is_complete'
        ' ORDER BY "table" LIMIT 1'
    ).fetchone()
    if (
        row is None
        and not session.execute(
            "SELECT 1 FROM slackwater.snapshot WHERE told >= 0 LIMIT 1"
        ).fetchone()
    ):
        return False
    with session.transaction():
        if row is None:
            _end(session)
        else:
            table, id_, last, told = row
            _tell_range(session, writers.get(table), table, id_, last, told, rows_max)
        stamp(session)
    return True


def _tell_range(
    session: Session,
    writer: RowWriter | None,
    table: str,
    id_: str,
    last: list[str] | None,
    told: int,
    rows_max: int,
) -> None:
    """The next rows of a table; one that is not configured any more is left out."""
    rows = [] if writer is None else _rows(session, writer, last, rows_max)
    if writer is not None and last is None and not told:
        emit(session, Snapshot(BEGIN, id_, table))
    if writer is not None and rows:
        key = {one: writer.table.columns[one] for one in writer.table.key}
        images = [(image(key, one).text, image(writer.table.columns, one).text) for one in rows]
        emit(session, SnapshotRows(id_, table, tuple(images)))
        last = [str(rows[-1][one]) for one in writer.table.key]
    session.execute(
        "UPDATE slackwater.snapshot SET last = %s, told = told + %s, is_complete = %s"
        ' WHERE "table" = %s',
        (last, len(rows), len(rows) < rows_max, table),
    )


def _rows(
    session: Session, writer: RowWriter, last: list[str] | None, rows_max: int
) -> list[dict[str, str | None]]:
    columns = [*writer.table.columns]
    keys = ", ".join(map(name, writer.table.key))
    behind = ", ".join(
        f"CAST(CAST(%s AS text) AS {writer.server.columns[one].cast.replace('%', '%%')})"
        for one in writer.table.key
    )
    where = "" if last is None else f" WHERE ({keys}) > ({behind})"
    query = (
        f"SELECT {', '.join(map(name, columns))} FROM {writer.server.sql}{where}"
        f" ORDER BY {keys} LIMIT {rows_max} FOR SHARE"
    )
    found = texts(session, query, last or ())
    return [dict(zip(columns, row, strict=True)) for row in found]


def _end(session: Session) -> None:
    """Emit the end; what is told is counted below 0 until the topic has it."""
    id_, count = session.execute(
        "SELECT max(id), sum(told)::bigint FROM slackwater.snapshot WHERE told >= 0"
    ).fetchone() or ("", 0)
    emit(session, Snapshot(END, id_, count=count))
    session.execute("UPDATE slackwater.snapshot SET told = -1 WHERE told >= 0")
