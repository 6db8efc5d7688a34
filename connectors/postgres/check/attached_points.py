"""What of an attached database is as attaching left it, or what to do."""

from collections.abc import Iterator, Sequence

from connectors.agent.found import CheckedPoint
from connectors.postgres.catalog import ServerTable
from connectors.postgres.install.attachment import read_attachment
from connectors.postgres.install.system import Capture, read_capture
from connectors.postgres.names import PUBLICATION
from connectors.postgres.sql import Session, statement

ANEW = (
    "what was written meanwhile is not in the log any more: `slackwater detach` it, and"
    " `slackwater attach` it anew, which tells all rows"
)

_SLOT = """SELECT s.plugin, s.database, s.wal_status, s.active_pid,
  s.confirmed_flush_lsn > %(lsn)s::pg_lsn, %(lsn)s::pg_lsn > pg_current_wal_flush_lsn(),
  pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)),
  pg_size_pretty(s.safe_wal_size)
FROM pg_replication_slots s WHERE s.slot_name = %(slot)s"""

_SERVER = """SELECT (SELECT system_identifier::text FROM pg_control_system()),
  ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int"""

_PUBLICATION = """SELECT p.puballtables, p.pubinsert AND p.pubupdate AND p.pubdelete
  AND p.pubtruncate, ARRAY(SELECT r.prrelid FROM pg_publication_rel r WHERE r.prpubid = p.oid)
FROM pg_publication p WHERE p.pubname = %s"""

_CUT = """SELECT r.prrelid FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
WHERE p.pubname = %s AND (r.prqual IS NOT NULL OR r.prattrs IS NOT NULL)"""
_CUT_FROM = 15
"""The version from which on a publication may have lists of columns and conditions."""


def attached_points(session: Session, servers: Sequence[ServerTable]) -> Iterator[CheckedPoint]:
    """What was checked; of a database that is not attached that it is not."""
    found = read_attachment(session)
    capture = None if found is None else read_capture(session)
    if found is None or capture is None:
        yield CheckedPoint("attached", "the database is not attached: run `slackwater attach`")
        return
    yield CheckedPoint(f"attached as replica {found.replica}")
    yield from _identities(session, servers)
    yield from _publication(session, servers)
    yield _origin(session, found.server_name)
    yield from _server(session, capture)
    yield from _slot(session, capture)


def _identities(session: Session, servers: Sequence[ServerTable]) -> Iterator[CheckedPoint]:
    query = "SELECT relreplident::text FROM pg_class WHERE oid = %s"
    for server in servers:
        is_full = session.execute(query, (server.oid,)).fetchone() == ("f",)
        alter = f"ALTER TABLE {statement(server.sql)} REPLICA IDENTITY FULL"
        yield CheckedPoint(f"REPLICA IDENTITY of table {server.name}", "" if is_full else alter)


def _publication(session: Session, servers: Sequence[ServerTable]) -> Iterator[CheckedPoint]:
    row = session.execute(_PUBLICATION, (PUBLICATION,)).fetchone()
    if row is None:
        yield CheckedPoint(f"publication {PUBLICATION}", f"it is gone: {ANEW}")
        return
    of_all, is_whole, oids = row
    lacking = [one for one in servers if one.oid not in oids and not of_all]
    for server in lacking:
        yield CheckedPoint(
            f"table {server.name} in publication {PUBLICATION}",
            "it is not in it: if it was configured later, run `slackwater attach` again; if it was"
            f" dropped and made again, {ANEW}",
        )
    if session.info.server_version // 10_000 >= _CUT_FROM:
        cut = session.execute(_CUT, (PUBLICATION,)).fetchall()
        if cut:
            alter = f"DROP and ADD its tables without them: {ANEW}"
            yield CheckedPoint(f"column lists or conditions in {PUBLICATION}", alter)
    everything = "publish = 'insert, update, delete, truncate'"
    alter = f"ALTER PUBLICATION {PUBLICATION} SET ({everything}); {ANEW}"
    yield CheckedPoint(f"publication {PUBLICATION}", "" if is_whole else alter)


def _origin(session: Session, origin: str) -> CheckedPoint:
    query = "SELECT 1 FROM pg_replication_origin WHERE roname = %s"
    is_there = session.execute(query, (origin,)).fetchone() is not None
    create = f"SELECT pg_replication_origin_create('{origin}')"
    return CheckedPoint(f"replication origin {origin}", "" if is_there else create)


def _server(session: Session, capture: Capture) -> Iterator[CheckedPoint]:
    system_id, timeline = session.execute(_SERVER).fetchone() or ("", 0)
    is_same = (system_id, timeline) == (capture.system_id, capture.timeline)
    yield CheckedPoint(
        "the server that was attached",
        ""
        if is_same
        else f"this is another server, or a copy or standby of it that was promoted: {ANEW}",
    )


def _slot(session: Session, capture: Capture) -> Iterator[CheckedPoint]:
    what, values = f"replication slot {capture.slot}", {"slot": capture.slot, "lsn": capture.lsn}
    row = session.execute(_SLOT, values).fetchone()
    if row is None:
        yield CheckedPoint(what, f"it is gone: {ANEW}")
        return
    plugin, database, status, pid, is_past, is_ahead, held, safe = row
    if (plugin, database) != ("pgoutput", session.info.dbname):
        yield CheckedPoint(what, f"it is of {plugin} and database {database}: {ANEW}")
    elif status == "lost":
        yield CheckedPoint(what, f"the server has removed its log (max_slot_wal_keep_size): {ANEW}")
    elif is_past:
        yield CheckedPoint(what, f"it was made again, or somebody else has read it: {ANEW}")
    elif is_ahead:
        yield CheckedPoint(what, f"the database was put back to an older state: {ANEW}")
    else:
        reader = f"read by pid {pid}" if pid else "read by no agent now"
        yield CheckedPoint(f"{what}, {reader}, for which the server keeps {held} of its log")
        if status == "unreserved":
            left = f"the server removes its log soon ({safe or 'nothing'} is left): start the agent"
            yield CheckedPoint(f"{what} may lose its log", left, is_in_the_way=False)
