"""The steps that make a database a replica, in order, as SQL that anybody may run.

The schema first, which remembers what was before; the publication before the slot, because one that
is younger is not there for what was logged before; the slot last, because from then on the server
keeps its log. A step that is done is found to be so: who was interrupted goes on.
"""
# ruff: noqa: S608 every name is quoted

import uuid
from collections.abc import Iterator, Sequence

from connectors.agent.attaching import InstallStep, ReplicaPlace
from connectors.postgres.check.rights import may_grant, may_use_schema, missing_grants
from connectors.postgres.format_number import FORMAT
from connectors.postgres.install.attachment import read_attachment
from connectors.postgres.install.system import missing_ddl, read_capture
from connectors.postgres.names import PUBLICATION, local_origin, server_name
from connectors.postgres.schema.catalog import ServerTable, read_table
from connectors.postgres.sql import Session, literal, statement
from connectors.postgres.sql import name as quoted
from streaming.core.model.errors import StateError
from streaming.core.model.table import Table

_TIMELINE = "('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int"
"""The timeline of the log; pg_control has it only from the next checkpoint on."""

MAKES_SLOT = "SELECT pg_create_logical_replication_slot"
"""With this begins the statement that waits for all transactions that are writing."""

_REMEMBER = """INSERT INTO slackwater.identity ("table", identity, index)
  SELECT {table}, c.relreplident,
    (SELECT x.relname FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
      WHERE i.indrelid = c.oid AND i.indisreplident)
  FROM pg_class c WHERE c.oid = {table}::regclass
ON CONFLICT DO NOTHING"""


def attach_steps(
    session: Session,
    replica: ReplicaPlace,
    tables: Sequence[Table],
    *,
    rows_are_shared: bool = False,
) -> list[InstallStep]:
    """All steps; only the first one, if the role may not read what is done of the others.

    StateError: the database is another replica.
    `rows_are_shared`: the rows that there are need not be told.
    """
    name = server_name(session.info.dbname, replica.name)
    local = local_origin(name)
    servers = [read_table(session, table.name) for table in tables]
    if not may_use_schema(session):
        return [_rights(session, servers)]
    _check_replica(session, replica.name)
    told = () if rows_are_shared else servers
    id_ = uuid.uuid4().hex[:16]
    return [
        _rights(session, servers),
        InstallStep("the schema slackwater", (*_schema(session, replica, name, servers),)),
        InstallStep(f"the replication origin {name}", (*_origin(session, name),)),
        InstallStep(
            f"the replication origin {local}, of writes that stay in this database",
            (*_origin(session, local),),
        ),
        InstallStep("REPLICA IDENTITY FULL of each table", (*_identities(session, servers),)),
        InstallStep(
            f"the publication {PUBLICATION}", (*_publication(session, servers, told, id_),)
        ),
        InstallStep(
            f"the replication slot {name}, behind which the server keeps its log",
            (*_slot(session, name, told, id_),),
        ),
    ]


def _rights(session: Session, servers: Sequence[ServerTable]) -> InstallStep:
    """The statements that give the role what it lacks, which it may hardly run itself."""
    what, grants = "rights of the agent's role", missing_grants(session, servers)
    is_alone = grants and not may_grant(session)
    to_do = (
        f"the role may not give itself the {what} (with --dry-run `slackwater attach` prints the"
        " statements): let a superuser run all that it prints, then run it again"
    )
    return InstallStep(what, (*grants,), to_do=to_do if is_alone else "")


def _check_replica(session: Session, replica: str) -> None:
    found = read_attachment(session)
    if found is not None and found.replica != replica:
        raise StateError(
            f"the database is attached as replica {found.replica}: detach it as such before"
            f" (`slackwater detach` with --replica {found.replica})"
        )


def _schema(
    session: Session, replica: ReplicaPlace, name: str, servers: Sequence[ServerTable]
) -> Iterator[str]:
    known, lacking = _remembered(session), missing_ddl(session)
    yield from lacking
    if lacking:
        (user,) = session.execute("SELECT current_user").fetchone() or ("",)
        role = statement(quoted(user))
        yield f"GRANT ALL ON SCHEMA slackwater TO {role}"
        yield f"GRANT ALL ON ALL TABLES IN SCHEMA slackwater TO {role}"
    if known is None or read_attachment(session) is None:
        yield (
            f"INSERT INTO slackwater.position (rid) VALUES ({replica.rid:d}) ON CONFLICT DO NOTHING"
        )
        yield (
            "INSERT INTO slackwater.attachment (format, replica, server_name) VALUES"
            f" ({FORMAT:d}, {literal(replica.name)}, {literal(name)}) ON CONFLICT DO NOTHING"
        )
    for table in (statement(server.sql) for server in servers):
        if table not in (known or ()):
            yield _REMEMBER.format(table=literal(table))


def _remembered(session: Session) -> set[str] | None:
    """The tables whose identity is remembered; None: there is no schema."""
    (there,) = session.execute("SELECT to_regclass('slackwater.identity')").fetchone() or (None,)
    if there is None:
        return None
    return {row[0] for row in session.execute('SELECT "table" FROM slackwater.identity')}


def _origin(session: Session, name: str) -> Iterator[str]:
    query = "SELECT 1 FROM pg_replication_origin WHERE roname = %s"
    if session.execute(query, (name,)).fetchone() is None:
        yield f"SELECT pg_replication_origin_create({literal(name)})"


def _identities(session: Session, servers: Sequence[ServerTable]) -> Iterator[str]:
    query = "SELECT relreplident FROM pg_class WHERE oid = %s"
    for server in servers:
        if session.execute(query, (server.oid,)).fetchone() != ("f",):
            yield f"ALTER TABLE {statement(server.sql)} REPLICA IDENTITY FULL"


def _publication(
    session: Session, servers: Sequence[ServerTable], told: Sequence[ServerTable], id_: str
) -> Iterator[str]:
    """A table that is added to an attached database is told by a snapshot of its own."""
    query = "SELECT oid FROM pg_publication WHERE pubname = %s"
    found = session.execute(query, (PUBLICATION,)).fetchone()
    if found is None:
        names = ", ".join(statement(server.sql) for server in servers)
        yield f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {names}"
        return
    rows = session.execute("SELECT prrelid FROM pg_publication_rel WHERE prpubid = %s", found)
    published = {row[0] for row in rows}
    added = [server for server in servers if server.oid not in published]
    is_attached = _is_attached(session)
    for server in added:
        yield f"ALTER PUBLICATION {PUBLICATION} ADD TABLE {statement(server.sql)}"
        if is_attached and server in told:
            yield _tell(server, id_)


def _slot(session: Session, name: str, told: Sequence[ServerTable], id_: str) -> Iterator[str]:
    """A slot of an attach that was interrupted is made again: nothing was read from it.

    Which tables have rows is asked when the slot is there: what is written later is in the log.
    """
    if _is_attached(session):
        return
    query = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
    if session.execute(query, (name,)).fetchone() is not None:
        yield f"SELECT pg_drop_replication_slot({literal(name)})"
    yield f"{MAKES_SLOT}({literal(name)}, 'pgoutput')"
    yield from (_tell(server, id_) for server in told)
    yield (
        "INSERT INTO slackwater.capture (system_id, timeline, slot, lsn)\n"
        f"  SELECT c.system_identifier::text, {_TIMELINE}, s.slot_name, s.confirmed_flush_lsn\n"
        "  FROM pg_control_system() c, pg_replication_slots s\n"
        f"  WHERE s.slot_name = {literal(name)}"
    )


def _is_attached(session: Session) -> bool:
    return read_attachment(session) is not None and read_capture(session) is not None


def _tell(server: ServerTable, id_: str) -> str:
    table = statement(server.sql)
    return (
        f'INSERT INTO slackwater.snapshot ("table", id) SELECT {literal(server.name)}, '
        f"{literal(id_)} WHERE EXISTS (SELECT 1 FROM {table}) ON CONFLICT DO NOTHING"
    )
