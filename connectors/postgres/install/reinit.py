"""Empties a database so that it starts anew (docs/protocol.md, A replica that starts anew).

One transaction of the own origin saves the rows, empties the tables and forgets the position: a
crash leaves either the database as it was, or one whose next hello says that it was emptied. Its
place in the log is the one behind which the log is read again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from connectors.agent import saved_lines
from connectors.agent.found import IsKnown
from connectors.agent.new_start import NewStart
from connectors.postgres.apply.rows import RowTexts, RowWriter
from connectors.postgres.install.system import (
    Capture,
    StoredPosition,
    write_capture,
    write_position,
)
from connectors.postgres.log.numbering import further
from connectors.postgres.messages import EpochMessage, emit, stamp
from connectors.postgres.sql import Session
from connectors.postgres.values.image import image
from streaming.core.delivery.consumer import Position
from streaming.core.model.csn import Generator

ROWS = 5_000
"""So many rows are read at a time."""
WAIT_S = 60
"""How long transactions are waited for that have written to the tables."""


def reinit(
    session: Session,
    writers: Mapping[str, RowWriter],
    capture: Capture,
    stored: StoredPosition,
    generator: Generator,
    start: NewStart,
    is_known: IsKnown,
    path: Path,
) -> int:
    """Empty the tables and forget the position; returns how many rows were saved at the path.

    Saved are the rows that the hub does not have so. The session is in autocommit mode and has the
    origin. `generator`: behind all that was captured and applied here.
    """
    with session.transaction():
        session.execute(f"SET LOCAL lock_timeout = '{WAIT_S}s'".encode())
        session.execute("SET LOCAL session_replication_role = replica")
        for writer in writers.values():
            session.execute(f"LOCK TABLE {writer.server.sql} IN EXCLUSIVE MODE".encode())
        (lsn,) = session.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone() or ("0/0",)
        saved = saved_lines.write(_rows_to_save(session, writers, is_known), path)
        for writer in writers.values():
            writer.delete_all(session)
        session.execute("DELETE FROM slackwater.snapshot")
        session.execute("DELETE FROM slackwater.uncarried")
        epoch = max(stored.replica_epoch, start.past.epoch + 1) + start.updates_end + 1
        position = Position(epoch=epoch - 1)
        emptied = StoredPosition(stored.rid, position, start.updates_end, epoch, reinit=True)
        write_position(session, emptied)
        write_capture(session, _begun(capture, lsn, epoch, generator, start))
        emit(session, EpochMessage(epoch))
        stamp(session)
    return saved


def _begun(
    capture: Capture, lsn: str, epoch: int, generator: Generator, start: NewStart
) -> Capture:
    """The log from here on: nobody writes the tables before the transaction ends."""
    behind = further(generator, start.past.csn)
    return replace(
        capture,
        lsn=lsn,
        time_s=behind.time_s,
        sequence=behind.sequence,
        opno=max(capture.opno, start.past.opno),
        epoch=epoch,
        csn=None,
        published="0",
        numbering="",
        changes_offset=start.changes_end,
        changes_session=start.past.session,
        own=None,
        schema="",
    )


def _rows_to_save(
    session: Session, writers: Mapping[str, RowWriter], is_known: IsKnown
) -> Iterator[str]:
    """The rows that the hub does not have so, each as a line of JSON.

    A row of a table with columns that are not replicated is always saved: the hub has no such
    column.
    """
    for name, writer in writers.items():
        columns = writer.table.columns
        has_others = not {*writer.columns} <= {*columns}
        for row in _rows(session, writer):
            key = writer.key_image([row[column] for column in writer.table.key])
            if has_others or not is_known(name, key, image(columns, row).text):
                yield saved_lines.line(name, key, row)


def _rows(session: Session, writer: RowWriter) -> Iterator[RowTexts]:
    """All rows, in the order of their keys."""
    last: RowTexts | None = None
    while found := writer.rows_behind(session, last, ROWS):
        yield from found
        last = found[-1]
