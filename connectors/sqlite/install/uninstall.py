"""Removes the agent from a database: its triggers, its tables, its lock file."""

import sqlite3
from contextlib import closing
from pathlib import Path

from connectors.sqlite.apply import saved
from connectors.sqlite.connections import connect
from connectors.sqlite.file import exclusive, lock_file
from connectors.sqlite.install.install import drop, objects
from connectors.sqlite.install.owner import check_owner
from connectors.sqlite.install.system import PREFIX, column_names
from connectors.sqlite.load import Prepare, nothing
from connectors.sqlite.transaction import atomic
from streaming.core.model.errors import StateError
from streaming.core.text.wording import as_count


def uninstall(
    database: Path,
    *,
    replica: str | None = None,
    discards_unpublished: bool = False,
    prepare: Prepare = nothing,
) -> list[str]:
    """Make the database an ordinary one again; the names of what was removed.

    `replica`: whose it has to be; None: whoever's it is. StateError: there is no file, it is
    another replica's, an agent runs, a trigger of the user's needs what would go, rows are saved in
    it, or changes are not published yet, which no other replica would ever get.
    """
    with exclusive(database):
        try:
            with closing(connect(database, prepare=prepare)) as connection:
                check_owner(connection, replica)
                removed = _uninstall(connection, discards_unpublished=discards_unpublished)
        except sqlite3.Error as error:
            raise StateError(f"{database}: {error}; nothing was removed") from error
        lock_file(database).unlink(missing_ok=True)
    return removed


def _uninstall(connection: sqlite3.Connection, *, discards_unpublished: bool) -> list[str]:
    with atomic(connection):
        there = objects(connection)
        _check_triggers(connection)
        _check_saved(connection)
        if not discards_unpublished:
            _check_published(connection)
        mode = _journal_mode(connection)
        drop(connection, there)
    if mode is not None:
        connection.execute(f"PRAGMA journal_mode = {mode}").fetchone()
    return sorted(there)


def _check_triggers(connection: sqlite3.Connection) -> None:
    names = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'view')"
        " AND substr(name, 1, ?1) <> ?2 AND instr(lower(sql), ?2) ORDER BY name",
        (len(PREFIX), PREFIX),
    ).fetchall()
    if names:
        raise StateError(
            f"{', '.join(name for (name,) in names)}: these triggers or views of yours name tables"
            " of the agent, and statements that fire them would fail: drop them, or create them"
            " without that condition, first"
        )


def _check_saved(connection: sqlite3.Connection) -> None:
    count = saved.count(connection) if saved.is_there(connection) else 0
    if count:
        raise StateError(
            f"the database keeps {as_count(count, 'row')} that were overwritten and are nowhere"
            " else: write them to a file with `slackwater agent saved --export FILE --forget`,"
            " or only --forget them, first"
        )


def _check_published(connection: sqlite3.Connection) -> None:
    if "_slackwater_journal" not in objects(connection):
        return
    (count,) = connection.execute(
        "SELECT count(*) FROM _slackwater_journal WHERE kind = 'change'"
        " AND id > (SELECT published FROM _slackwater_position)"
    ).fetchone()
    if count:
        raise StateError(
            f"not published yet: {as_count(count, 'change')}, and no other replica would ever get"
            " them: run the agent until they are, or confirm with --discard-unpublished"
        )


def _journal_mode(connection: sqlite3.Connection) -> str | None:
    """The journal mode from before; None: it is not known."""
    there = column_names(connection, "_slackwater_origin")
    if "journal_mode" not in there:  # there is no agent, or an early one's
        return None
    (mode,) = connection.execute("SELECT journal_mode FROM _slackwater_origin").fetchone()
    return mode if isinstance(mode, str) and mode.isalpha() else None
