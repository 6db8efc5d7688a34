"""Applies one batch of the hub as one local transaction (docs/wire.md, Apply).

Rows, position, epoch raised by one and the journal's `applied` commit together or not at all.
Foreign keys are not checked: the origin checked them, and a parent row may arrive later.
The user's own triggers do fire (see user_triggers.py).
"""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from connectors.agent.contract import AppliedBatch
from connectors.sqlite import journal, sql
from connectors.sqlite.conflict_clauses import NOT_NULL, UNIQUE
from connectors.sqlite.rows import RowWriter
from connectors.sqlite.standing import NotStandingError
from connectors.sqlite.strangers import items_of
from connectors.sqlite.system import PREFIX
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.change import Op
from streaming.core.model.csn import Generator
from streaming.core.model.errors import CsnError, StateError, WireError
from streaming.core.model.record import Item, Refused
from streaming.core.model.truncation import ALL_KEYS

NO_CSN = "0" * 20
"""The CSN in a `refused` for a row that no replica wrote."""

CODES = {
    "SQLITE_CONSTRAINT_UNIQUE": "unique",
    "SQLITE_CONSTRAINT_PRIMARYKEY": "unique",
    "SQLITE_CONSTRAINT_ROWID": "unique",
    "SQLITE_CONSTRAINT_FOREIGNKEY": "foreign_key",
    "SQLITE_CONSTRAINT_CHECK": "check",
    "SQLITE_CONSTRAINT_NOTNULL": "check",
    "SQLITE_CONSTRAINT_DATATYPE": "type",
    "SQLITE_MISMATCH": "type",
    "SQLITE_TOOBIG": "size",
}
"""SQLite's error name -> the code of a refusal; anything else is `other`."""

RAISED = {UNIQUE: "unique", NOT_NULL: "check"}
"""What a trigger says that stands for a constraint -> the code of a refusal."""

log = logging.getLogger(__name__)


class _UnknownTableError(WireError):
    """The table is not in the agent's settings."""


def apply_batch(
    connection: sqlite3.Connection,
    writers: Mapping[str, RowWriter],
    batch: ApplyBatch,
    next_offset: int,
    clock_ms: int,
    check: Callable[[], object] = lambda: None,
) -> AppliedBatch:
    """Apply a batch and store the offset behind it; a refused item does not block the others.

    The connection is in autocommit mode. `check` is called in the transaction, before a row is
    written, and raises if nothing may be. A truncate of which the database refuses a row deletes
    the others one by one. StateError for an item that this agent does not know.
    """
    for item in batch.items:
        if isinstance(item, Item) and item.op not in list(Op):
            raise StateError(
                f"batch {batch.hub_epoch} holds a {item.type} of op {item.op}, which this agent"
                " does not know: upgrade it"
            )
    items, refused = list[Item](), dict[int, Refused]()
    is_careful = False
    while True:
        connection.execute("BEGIN IMMEDIATE")
        try:
            check()
            _begin(connection, writers)
            found = items_of(connection, writers, batch.items, each_row=is_careful)
            if found != items:  # somebody wrote before this transaction began, or it is careful now
                items, refused = found, {}
            if is_careful:
                is_done = _write_each(connection, writers, batch.hub_epoch, items, refused)
            else:
                is_done = _write_all(connection, writers, items)
            if is_done:
                lacking = _lacking(items, refused)
                position = _end(connection, batch, items, lacking, next_offset, clock_ms)
                connection.execute("COMMIT")
                return AppliedBatch(position, lacking)
            is_careful = True
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _begin(connection: sqlite3.Connection, writers: Mapping[str, RowWriter]) -> None:
    connection.execute("UPDATE _slackwater_origin SET applying = 1")
    for name in writers:
        noted = sql.name(f"{PREFIX}replaced_{name}")
        connection.execute(f"DELETE FROM {noted}")  # noqa: S608 the name is quoted


def _write_all(
    connection: sqlite3.Connection, writers: Mapping[str, RowWriter], items: Sequence[Item]
) -> bool:
    """Write the items in order, as if none were refused; False: one is, so roll back."""
    for item in items:
        try:
            _write_row(connection, writers, item)
        except (sqlite3.Error, OverflowError, WireError) as error:
            if _code(error) is None:
                raise
            return False
    return True


def _write_each(
    connection: sqlite3.Connection,
    writers: Mapping[str, RowWriter],
    hub_epoch: int,
    items: Sequence[Item],
    refused: dict[int, Refused],
) -> bool:
    """Write each item by itself; False: a refusal ended the transaction, so start it again.

    What was refused is tried again behind the others, which may have removed its cause: of rows
    that were written several times while the replica was away, only the last write is sent.
    `refused`: place -> the refusal that ended a transaction; with True, of every refused item.
    """
    found = dict(refused)
    places = [place for place in range(len(items)) if place not in refused]
    while places:
        written = 0
        for place in places:
            refusal = _write_item(connection, writers, hub_epoch, items[place])
            if refusal is None:
                written += 1
                found.pop(place, None)
            elif connection.in_transaction:
                found[place] = refusal
            else:
                refused[place] = refusal
                return False
        places = _last_of_rows(items, found.keys() - refused.keys()) if written else []
    refused |= found
    return True


def _write_item(
    connection: sqlite3.Connection, writers: Mapping[str, RowWriter], hub_epoch: int, item: Item
) -> Refused | None:
    """Write one item; why the database refused it, if it did."""
    connection.execute("SAVEPOINT item")
    try:
        _write_row(connection, writers, item)
    except (sqlite3.Error, OverflowError, WireError) as error:
        code = _code(error)
        if code is None:
            raise
        if connection.in_transaction:
            connection.execute("ROLLBACK TO item")
            connection.execute("RELEASE item")
        csn = item.csn or NO_CSN
        return Refused(hub_epoch, csn, item.table, item.key, code, str(error))
    connection.execute("RELEASE item")
    return None


def _last_of_rows(items: Sequence[Item], places: Iterable[int]) -> list[int]:
    """Those of these places that are the last one of their row in the batch."""
    last = {(item.table, item.key): place for place, item in enumerate(items)}
    return sorted(set(places) & set(last.values()))


def _lacking(items: Sequence[Item], refused: Mapping[int, Refused]) -> tuple[Refused, ...]:
    """The refusals to report: of rows whose last item in the batch was refused.

    A truncate is refused as a whole only of a table that is not here, of which there are no rows.
    """
    places = _last_of_rows(items, refused)
    return tuple(refused[place] for place in places if items[place].key != ALL_KEYS)


def _write_row(
    connection: sqlite3.Connection, writers: Mapping[str, RowWriter], item: Item
) -> None:
    writer = writers.get(item.table)
    if writer is None:
        raise _UnknownTableError(f"table {item.table} is not configured here")
    writer.write(connection, item)


def _code(error: Exception) -> str | None:
    """The code of a refusal; None: the database itself failed, and nothing is refused."""
    if isinstance(error, _UnknownTableError):
        return "other"
    if isinstance(error, NotStandingError):
        return "trigger"
    if isinstance(error, WireError | OverflowError):
        return "type"
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_CONSTRAINT_TRIGGER":
        return next((code for text, code in RAISED.items() if str(error).startswith(text)), "other")
    known = name in CODES or name.startswith("SQLITE_CONSTRAINT") or name == "SQLITE_ERROR"
    return CODES.get(name, "other") if known or not name else None


def _end(
    connection: sqlite3.Connection,
    batch: ApplyBatch,
    items: Iterable[Item],
    refused: tuple[Refused, ...],
    next_offset: int,
    clock_ms: int,
) -> Position:
    """Store position, generator and epoch, and journal the refused items and `applied`."""
    rid, time_s, sequence, offset_s, epoch = connection.execute(
        "SELECT rid, time_s, sequence, remote_offset_s, epoch FROM _slackwater_origin"
    ).fetchone()
    generator = advanced(Generator(rid, time_s, sequence, offset_s), items, clock_ms // 1000)
    position = replace(batch.position, epoch=epoch)
    session = position.session or ""
    for one in refused:
        journal.write_refused(connection, clock_ms, epoch, session, one)
    journal.write_applied(connection, session, position.applied(), batch.hub_epoch)
    connection.execute(
        "UPDATE _slackwater_origin SET applying = 0, epoch = epoch + 1,"
        " time_s = ?, sequence = ?, remote_offset_s = ?",
        (generator.time_s, generator.sequence, generator.remote_offset_s),
    )
    connection.execute(
        "UPDATE _slackwater_position SET last = ?, covers = ?, epoch = ?, ruv = ?, generation = ?,"
        " reached = ?, updates_offset = ?, reinit = 0",
        (
            position.last,
            position.covers,
            position.epoch,
            journal.ruv_text(position.ruv),
            position.generation,
            position.reached,
            next_offset,
        ),
    )
    return position


def advanced(generator: Generator, items: Iterable[Item], clock_s: int) -> Generator:
    """The generator past the CSNs of these items.

    It ignores a CSN that is too far ahead, whose row is applied like any other: refusing the row
    would stop this replica because of another one's clock.
    """
    errors = list[CsnError]()
    for csn in sorted({item.csn for item in items if item.csn is not None}, reverse=True):
        try:
            generator = generator.seen(csn, clock_s)
            break
        except CsnError as error:
            errors.append(error)
    if errors:
        log.error("the row is applied, but the next CSN does not follow it: %s", errors[0])
    return generator
