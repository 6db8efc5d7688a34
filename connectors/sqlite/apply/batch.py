"""Applies one batch of the hub as one local transaction (docs/wire.md, Apply).

Rows, position, epoch raised by one and the journal's `applied` commit together or not at all.
Foreign keys are not checked: the origin checked them, and a parent row may arrive later.
The user's own triggers do fire (see user_triggers.py).
"""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from connectors.agent.applying import advanced, check_known, lacking, writer_of
from connectors.agent.contract import AppliedBatch
from connectors.agent.each_item import EachItem
from connectors.sqlite import sql
from connectors.sqlite.apply import saved
from connectors.sqlite.apply.each_item import (
    SqliteItemRows,
    StartAgainError,
    refusal_code,
)
from connectors.sqlite.apply.extraneous import items_of
from connectors.sqlite.apply.rows import RowWriter
from connectors.sqlite.install.system import PREFIX
from connectors.sqlite.journal import entries as journal
from connectors.sqlite.journal import uncaptured, uncarried
from connectors.sqlite.position import store_position
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.csn import MAX_SKEW_S, Generator
from streaming.core.model.errors import WireError
from streaming.core.records.record import Item, Refused

log = logging.getLogger(__name__)


def apply_batch(
    connection: sqlite3.Connection,
    writers: Mapping[str, RowWriter],
    batch: ApplyBatch,
    next_offset: int,
    clock_ms: int,
    check: Callable[[], object] = lambda: None,
    max_skew_s: int = MAX_SKEW_S,
) -> AppliedBatch:
    """Apply a batch and store the offset behind it; a refused item does not block the others.

    The connection is in autocommit mode. `check` is called in the transaction, before a row is
    written, and raises if nothing may be. A truncate of which the database refuses a row deletes
    the others one by one. A row that is nowhere else is saved first. `max_skew_s`: how far ahead of
    the clock a CSN is followed. StateError for an item that this agent does not know.
    """
    check_known(batch)
    # ended: place -> the refusal that ended a transaction, or of a truncate
    items, ended = list[Item](), dict[int, Refused]()
    is_careful, splits = False, False
    while True:
        connection.execute("BEGIN IMMEDIATE")
        try:
            check()
            _begin(connection, writers)
            splits = splits or any(items[place].is_of_table for place in ended)
            found = items_of(connection, writers, batch.items, each_row=splits)
            if found != items:  # somebody wrote before this transaction began, or it splits now
                items, ended = found, {}
            at_risk = saved.save(connection, writers, items)
            refused: dict[int, Refused] | None = None
            try:
                if is_careful:
                    refused = _write_each(connection, writers, batch.hub_epoch, items, ended)
                else:
                    refused = _write_all(connection, writers, items)
            except StartAgainError as error:
                ended[error.place] = error.refusal
            if refused is not None:
                reported = lacking(items, refused)
                gone = saved.forget_standing(connection, at_risk)
                position = _end(connection, batch, reported, next_offset, clock_ms)
                _move_past(connection, items, clock_ms, max_skew_s)
                copied = uncaptured.note_copied(connection, batch.items)
                connection.execute("COMMIT")
                for table in copied:
                    log.info("table %s, which was written without capture, is copied", table)
                return AppliedBatch(position, reported, gone)
            is_careful = True
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _begin(connection: sqlite3.Connection, writers: Mapping[str, RowWriter]) -> None:
    uncarried.note(connection)
    connection.execute("UPDATE _slackwater_origin SET applying = 1")
    for name in writers:
        noted = sql.name(f"{PREFIX}replaced_{name}")
        connection.execute(f"DELETE FROM {noted}")  # noqa: S608 the name is quoted


def _write_all(
    connection: sqlite3.Connection, writers: Mapping[str, RowWriter], items: Sequence[Item]
) -> dict[int, Refused] | None:
    """Write the items in order, as if none were refused; None: one is, so roll back."""
    for item in items:
        try:
            writer_of(writers, item).write(connection, item)
        except (sqlite3.Error, OverflowError, WireError) as error:
            if refusal_code(error) is None:
                raise
            return None
    return {}


def _write_each(
    connection: sqlite3.Connection,
    writers: Mapping[str, RowWriter],
    hub_epoch: int,
    items: Sequence[Item],
    ended: Mapping[int, Refused],
) -> dict[int, Refused]:
    """Write the items that ended no earlier transaction; what is refused, by place."""
    rows = SqliteItemRows(connection, writers, items)
    places = [place for place in range(len(items)) if place not in ended]
    each = EachItem(rows, connection.execute, hub_epoch, items)
    return each.write(places) | dict(ended)


def _end(
    connection: sqlite3.Connection,
    batch: ApplyBatch,
    refused: tuple[Refused, ...],
    next_offset: int,
    clock_ms: int,
) -> Position:
    """Store position and epoch, and journal the refused items and `applied`."""
    (epoch,) = connection.execute("SELECT epoch FROM _slackwater_origin").fetchone()
    position = replace(batch.position, epoch=epoch)
    session = position.session or ""
    for one in refused:
        journal.write_refused(connection, clock_ms, epoch, session, one)
    journal.write_applied(connection, session, position.applied(), batch.hub_epoch)
    connection.execute("UPDATE _slackwater_origin SET applying = 0, epoch = epoch + 1")
    store_position(connection, position)
    connection.execute(
        "UPDATE _slackwater_position SET updates_offset = ?, reinit = 0,"
        " noted = (SELECT max(id) FROM _slackwater_journal)",
        (next_offset,),
    )
    return position


def _move_past(
    connection: sqlite3.Connection, items: Iterable[Item], clock_ms: int, max_skew_s: int
) -> None:
    rid, time_s, sequence = connection.execute(
        "SELECT rid, time_s, sequence FROM _slackwater_origin"
    ).fetchone()
    generator = advanced(Generator(rid, time_s, sequence), items, clock_ms // 1000, max_skew_s)
    connection.execute(
        "UPDATE _slackwater_origin SET time_s = ?, sequence = ?",
        (generator.time_s, generator.sequence),
    )
