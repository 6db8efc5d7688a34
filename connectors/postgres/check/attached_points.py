"""What of an attached database is as attaching left it, or what to do, in the agent's own words."""

from collections.abc import Iterator, Sequence

from connectors.agent.found import CheckedPoint
from connectors.postgres.install.attachment import Attachment, read_attachment
from connectors.postgres.install.system import Capture, read_capture
from connectors.postgres.log.captured_tables import check_captured, read_captured
from connectors.postgres.log.slot import gap_of, read_log_state
from connectors.postgres.names import PUBLICATION, local_origin
from connectors.postgres.schema.catalog import ServerTable
from connectors.postgres.sql import Session
from streaming.core.model.errors import HubError, StateError
from streaming.core.model.table import Table

_GAP = (
    "when its agent starts it makes a new slot and tells the rows of all tables again; rows that"
    " were deleted meanwhile come back from the hub: delete them again"
)

_SLOT = """SELECT s.active_pid, s.wal_status,
  pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)),
  coalesce(pg_size_pretty(s.safe_wal_size), 'nothing')
FROM pg_replication_slots s WHERE s.slot_name = %s"""


def attached_points(
    session: Session, tables: Sequence[tuple[Table, ServerTable]]
) -> Iterator[CheckedPoint]:
    """What was checked; of a database that is not attached that it is not."""
    found = read_attachment(session)
    capture = None if found is None else read_capture(session)
    if found is None or capture is None:
        yield CheckedPoint("attached", "the database is not attached: run `slackwater attach`")
        return
    yield CheckedPoint(f"attached as replica {found.replica}")
    yield from _published(session, tables)
    yield from _log(session, found, capture)
    yield _local_origin(session, found)


def _local_origin(session: Session, found: Attachment) -> CheckedPoint:
    """Whether writes can stay in this database; whoever attached it before made no origin."""
    name = local_origin(found.server_name)
    query = "SELECT 1 FROM pg_replication_origin WHERE roname = %s"
    is_there = session.execute(query, (name,)).fetchone() is not None
    to_do = "" if is_there else "it is not there: the next start of the agent makes it"
    what = f"replication origin {name}, of writes that stay in this database"
    return CheckedPoint(what, to_do, is_in_the_way=False)


def _published(
    session: Session, tables: Sequence[tuple[Table, ServerTable]]
) -> Iterator[CheckedPoint]:
    """The publication, and what the log has of each table."""
    try:
        captured = read_captured(session, (server.oid for _, server in tables))
    except StateError as error:
        yield CheckedPoint(f"publication {PUBLICATION}", str(error))
        return
    yield CheckedPoint(f"publication {PUBLICATION}")
    for table, server in tables:
        what, one = f"table {table.name} in the log", captured.get(server.oid)
        try:
            check_captured(table, server.relation, None, one)
        except HubError as error:
            yield CheckedPoint(what, str(error))
        else:
            yield CheckedPoint(what)


def _log(session: Session, found: Attachment, capture: Capture) -> Iterator[CheckedPoint]:
    """Whether the log is there from where the agent reads it on, and what is kept for it."""
    name = found.server_name
    what = f"replication slot and origin {name}"
    try:
        gap = gap_of(read_log_state(session, name), capture, name, session.info.dbname)
    except StateError as error:
        yield CheckedPoint(what, str(error))
        return
    if gap is not None:
        yield CheckedPoint(what, f"{gap}: {_GAP}", is_in_the_way=False)
        return
    pid, status, held, left = session.execute(_SLOT, (name,)).fetchone() or (None, "", "", "")
    reader = f"pid {pid} reads it" if pid else "no agent reads it now"
    yield CheckedPoint(f"{what}: {reader}, and the server keeps {held} of its log for it")
    if status == "unreserved":
        soon = f"its server removes the log soon, {left} is left: start the agent"
        yield CheckedPoint(what, soon, is_in_the_way=False)
