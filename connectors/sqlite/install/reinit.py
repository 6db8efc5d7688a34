"""Empties a database so that it starts anew (docs/protocol.md, A replica that starts anew).

One transaction saves the rows, empties the tables and forgets the position: a crash leaves either
the database as it was, or one whose next hello says that it was emptied.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from connectors.agent import saved_lines
from connectors.agent.found import IsKnown
from connectors.agent.new_start import NewStart
from connectors.sqlite import sql
from connectors.sqlite.apply import saved_rows
from connectors.sqlite.install.system import PREFIX
from connectors.sqlite.journal.capture import row_images
from connectors.sqlite.journal.reconcile import move_past
from connectors.sqlite.schema.catalog import BINARY, read
from connectors.sqlite.schema.user_triggers import GUARD
from connectors.sqlite.transaction import atomic
from connectors.sqlite.values.image import wire_image
from streaming.core.model.errors import StateError
from streaming.core.model.table import Table


def reinit(
    connection: sqlite3.Connection,
    tables: Iterable[Table],
    start: NewStart,
    is_known: IsKnown,
    path: Path,
) -> int:
    """Empty the tables and forget the position; returns how many rows were saved at the path.

    Saved are the rows that the hub does not have so. The connection is in autocommit mode.
    StateError if a trigger of the user's keeps a row.
    """
    known = tuple(tables)
    with atomic(connection):
        saved = saved_lines.write(_rows_to_save(connection, known, is_known), path)
        _empty(connection, known)
        _forget(connection, start)
    return saved


def _rows_to_save(
    connection: sqlite3.Connection, tables: Iterable[Table], is_known: IsKnown
) -> Iterator[str]:
    """The rows that the hub does not have so, each as a line of JSON.

    A row of a table with columns that are not configured is always saved: the hub has no such
    column.
    """
    for table in tables:
        catalog = read(connection, table)
        names = [one.name for one in catalog.columns.values() if not one.generated]
        has_others = not set(names) <= set(table.columns)
        order = ", ".join(f"x.{sql.name(name)} COLLATE {BINARY}" for name in catalog.identity)
        images = connection.execute(f"{row_images(table, catalog)} ORDER BY {order}")
        # a query of its own: a row may have as many columns as SQLite answers
        listed = ", ".join(f"x.{sql.name(name)}" for name in names)
        rows = connection.execute(
            f"SELECT {listed} FROM {sql.name(table.name)} x ORDER BY {order}"  # noqa: S608 quoted
        )
        for (captured_key, captured), values in zip(images, rows, strict=True):
            key, image = wire_image(captured_key).text, wire_image(captured).text
            if has_others or not is_known(table.name, key, image):
                yield saved_rows.line(table.name, key, dict(zip(names, values, strict=True)))


def _empty(connection: sqlite3.Connection, tables: Iterable[Table]) -> None:
    """Delete all rows; nothing of that is captured."""
    connection.execute("UPDATE _slackwater_origin SET applying = 1")
    for table in tables:
        connection.execute(f"DELETE FROM {sql.name(table.name)}")  # noqa: S608 quoted
        if connection.execute(sql.any_row(table.name)).fetchone():
            raise StateError(
                f"table {table.name} cannot be emptied: a trigger of yours keeps rows in it; give"
                f" it {GUARD}, then repeat this command"
            )
        connection.execute(f"DELETE FROM {sql.name(f'{PREFIX}replaced_{table.name}')}")  # noqa: S608
    connection.execute("UPDATE _slackwater_origin SET applying = 0")


def _forget(connection: sqlite3.Connection, start: NewStart) -> None:
    """Forget position and journal, and move past every CSN, epoch and opno that was ever given.

    What another file had applied and not acknowledged gave it an epoch for each record of the
    updates topic at most. The ids of an empty journal start at 1 again, so nothing of it counts as
    published.
    """
    move_past(connection, start.past)
    connection.execute("UPDATE _slackwater_origin SET epoch = epoch + ?", (start.updates_end,))
    connection.execute("DELETE FROM _slackwater_journal")
    connection.execute("DELETE FROM _slackwater_snapshot")
    connection.execute("DELETE FROM _slackwater_uncarried")
    connection.execute("DELETE FROM _slackwater_uncaptured")
    connection.execute(
        "UPDATE _slackwater_position SET session = NULL, last = 0, covers = 0, ruv = '',"
        " generation = 0, reached = 0, agreement = '', noted = 0, own = NULL, reinit = 1,"
        " changes_session = ?, changes_offset = ?, updates_offset = ?,"
        " epoch = (SELECT epoch FROM _slackwater_origin), published = 0,"
        " trimmed_csn = NULL, trimmed_opno = 0, schema = NULL",
        (start.past.session, start.changes_end, start.updates_end),
    )
    connection.execute(
        "UPDATE _slackwater_origin SET epoch = epoch + 1, depth = 0, prim_csn = NULL"
    )
