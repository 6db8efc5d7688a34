"""Makes a database a replica: the agent's schema, its origin, what the log has, and the slot.

In this order, so that nothing is decoded before it is known how (facts of the manual: a publication
that is younger than its slot is not there for what was logged before).
"""

from collections.abc import Iterable

from connectors.postgres import snapshot
from connectors.postgres.catalog import ServerTable, read_table
from connectors.postgres.install.system import (
    Capture,
    StoredPosition,
    create,
    read_capture,
    write_capture,
    write_position,
)
from connectors.postgres.names import PUBLICATION, server_name
from connectors.postgres.sql import Session
from streaming.core.model.errors import StateError
from streaming.core.model.table import Table


def attach(session: Session, rid: int, replica: str, tables: Iterable[Table]) -> None:
    """Attach a database that is none of a replica; StateError: it is one already.

    The session is in autocommit mode, for a slot is made outside of a transaction that has written.
    """
    create(session)
    if read_capture(session) is not None:
        raise StateError("this database is attached already: detach it before")
    servers = [read_table(session, table.name) for table in tables]
    name = server_name(session.info.dbname, replica)
    session.execute("SELECT pg_replication_origin_create(%s)", (name,))
    for server in servers:
        session.execute(f"ALTER TABLE {server.sql} REPLICA IDENTITY FULL".encode(), ())
    names = ", ".join(server.sql for server in servers)
    session.execute(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {names}".encode(), ())
    write_position(session, StoredPosition(rid))
    filled = [one.name for one in servers if _has_rows(session, one)]
    snapshot.begin(session, filled)
    (lsn,) = session.execute(
        "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput')", (name,)
    ).fetchone() or ("0/0",)
    system, timeline = session.execute(
        "SELECT (SELECT system_identifier::text FROM pg_control_system()),"
        " (SELECT timeline_id FROM pg_control_checkpoint())"
    ).fetchone() or ("", 0)
    write_capture(session, Capture(system, timeline, name, lsn))


def _has_rows(session: Session, server: ServerTable) -> bool:
    query = f"SELECT EXISTS (SELECT 1 FROM {server.sql})"  # noqa: S608 the name is quoted
    (found,) = session.execute(query.encode(), ()).fetchone() or (False,)
    return bool(found)
