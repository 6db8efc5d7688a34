"""What an agent finds when it opens an attached database, and what it does before it reads the log.

In this order: the origin, which locks other agents out; the position, which a backend of an agent
before may have committed until then; the state of the log; the tables. What the log lacks of a
table is told again, row by row, and said: nothing is skipped, or made again in silence.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import psycopg

from connectors.agent.contract import StoreBusyError, StoreLostError
from connectors.postgres import snapshot
from connectors.postgres.apply.rows import RowWriter, writers
from connectors.postgres.check.table_faults import check_tables
from connectors.postgres.install.attachment import attached
from connectors.postgres.install.system import (
    Capture,
    StoredPosition,
    create,
    read_capture,
    read_position,
    write_capture,
)
from connectors.postgres.log.captured_tables import (
    ColumnForms,
    TableForm,
    check_captured,
    note_told,
    read_captured,
    read_known,
    read_logged,
    to_tell,
    untold,
    with_gone,
    write_known,
)
from connectors.postgres.log.gap import begin_anew
from connectors.postgres.log.new_columns import is_known
from connectors.postgres.log.slot import LogState, gap_of, read_log_state, refuse_standby
from connectors.postgres.names import local_origin, server_name
from connectors.postgres.sql import Session
from streaming.core.model.table import Table

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedDatabase:
    """An attached database whose log can be read; `name`: of its origin and slot.

    `tables`: by name, as they are now. `unreplicated`: the columns that are not replicated, each as
    table.column. `forms`: oid -> the forms that the log may have of a table.
    """

    name: str
    capture: Capture
    stored: StoredPosition
    writers: Mapping[str, RowWriter]
    tables: Mapping[str, TableForm]
    unreplicated: tuple[str, ...]
    forms: Mapping[int, Sequence[ColumnForms]]

    @property
    def by_oid(self) -> Mapping[int, Table]:
        """The replicated tables as the log names them."""
        return {one.server.oid: one.table for one in self.writers.values()}


def open_database(
    session: Session, replica: str, tables: Iterable[Table], skew_s: int
) -> OpenedDatabase:
    """Take the origin, and make sure that the log is read from where it was read.

    StateError, ConfigError: somebody must act first. StoreBusyError: an agent has the database.
    """
    refuse_standby(session)
    attached(session)
    create(session)  # what an agent before did not have
    capture = read_capture(session)
    assert capture is not None  # noqa: S101 an attached database has it
    name = server_name(session.info.dbname, replica)
    state = read_log_state(session, name)
    if not state.has_origin:
        session.execute("SELECT pg_replication_origin_create(%s)", (name,))
    _take_origin(session, name)
    _make_local_origin(session, local_origin(name))
    stored = read_position(session)
    gap = gap_of(state, capture, name, session.info.dbname)
    known = tuple(tables)
    check_tables(session, known)
    known_writers = writers(session, known)
    now, unreplicated = look_at_tables(session, known_writers)
    before = read_known(session)
    kept = with_gone(before, now)
    capture = _log_read_on(
        session, gap, state, name, capture, stored, kept, before, skew_s, known_writers
    )
    logged = read_logged(session)
    forms = {
        known_writers[table].server.oid: [*logged.get(table, ()), one.columns]
        for table, one in now.items()
    }
    log_unreplicated(unreplicated)
    return OpenedDatabase(name, capture, stored, known_writers, kept, unreplicated, forms)


def log_unreplicated(columns: Iterable[str], since: Iterable[str] = ()) -> None:
    """Log which columns are not replicated, but for those that were logged before."""
    known = set(since)
    if named := [one for one in columns if one not in known]:
        log.warning("not replicated, because not configured: %s", ", ".join(named))


def _take_origin(session: Session, name: str) -> None:
    """Have the origin for this session; StoreBusyError: another one has it."""
    try:
        session.execute("SELECT pg_replication_origin_session_setup(%s)", (name,))
    except psycopg.errors.ObjectInUse as error:
        raise StoreBusyError(
            "another agent works on this database, or its server still has the connection of one"
            f" that died ({error.diag.message_primary}): stop the other one, or wait"
        ) from error


def _make_local_origin(session: Session, name: str) -> None:
    """Make the origin of writes that stay here, if it is not there: attaching made none before."""
    session.execute(
        "SELECT pg_replication_origin_create(%(name)s)"
        " WHERE NOT EXISTS (SELECT 1 FROM pg_replication_origin WHERE roname = %(name)s)",
        {"name": name},
    )


def look_at_tables(
    session: Session,
    writers_: Mapping[str, RowWriter],
    then: Mapping[str, TableForm] | None = None,
) -> tuple[dict[str, TableForm], tuple[str, ...]]:
    """The tables as they are in the log, and which of their columns are not replicated.

    Raise if the log lacks something that a table needs. StoreLostError: a table has a column now
    that it lacked, so the database is opened anew.
    `then`: as they were when the agent started; None: it starts.
    """
    found = read_captured(session, (one.server.oid for one in writers_.values()))
    now, unreplicated = dict[str, TableForm](), list[str]()
    for name, writer in writers_.items():
        oid, table = writer.server.oid, writer.table
        captured = found.get(oid)
        check_captured(table, writer.server.relation, then[name] if then else None, captured)
        assert captured is not None  # noqa: S101 it was checked
        came = sorted(writer.lacking.configured & captured.columns.keys())
        if then and came:
            raise StoreLostError(f"table {name} has column {', '.join(came)} now")
        now[name] = captured.known_as(table)
        unreplicated += captured.unreplicated(table)
    return now, tuple(unreplicated)


def _log_read_on(
    session: Session,
    gap: str | None,
    state: LogState,
    name: str,
    capture: Capture,
    stored: StoredPosition,
    now: Mapping[str, TableForm],
    before: Mapping[str, TableForm],
    skew_s: int,
    writers_: Mapping[str, RowWriter],
) -> Capture:
    """Where the log is read on, after what it lacks is noted to be told."""
    if gap is not None:
        clock_s = time.time_ns() // 10**9
        capture = begin_anew(session, gap, state, name, capture, stored, now, clock_s, skew_s)
        session.execute("DELETE FROM slackwater.logged")  # the new slot has only what is now
    told = {} if gap is not None or not before else dict(to_tell(before, now))
    others = [] if gap is not None else untold(session)
    known = [one for one in told if is_known(session, writers_[one], before.get(one), now[one])]
    told = {one: why for one, why in told.items() if one not in known}
    told |= dict.fromkeys(others, "it was altered, written, and altered again")
    for table, why in told.items():
        log.warning("the log has not all of table %s: %s; its rows are told again", table, why)
    noted = replace(capture, publication=state.publication or 0)
    if told or noted != capture or before != now:
        with session.transaction():
            if told:
                snapshot.begin_with(session, told)
            for table in (*told, *known):
                note_told(session, table, before.get(table))
            write_known(session, now)
            write_capture(session, noted)
    return noted
