"""The rights that the agent's role has, and the statements that give it those that it lacks."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from psycopg import pq

from connectors.agent.found import CheckedPoint
from connectors.postgres.connection import agent_conninfo
from connectors.postgres.schema.catalog import ServerTable, read_table
from connectors.postgres.sql import Session, name, statement
from streaming.core.model.errors import ConfigError, StateError
from streaming.core.model.table import Table

_ORIGIN_FUNCTIONS = (
    "pg_replication_origin_create(text)",
    "pg_replication_origin_drop(text)",
    "pg_replication_origin_session_setup(text)",
    "pg_replication_origin_session_reset()",
    "pg_replication_origin_xact_setup(pg_lsn, timestamptz)",
)
_OF_PARAMETER = 15
"""The version from which on a right on a setting can be given."""
_DML = ("SELECT", "INSERT", "UPDATE", "DELETE")

_ROLE = """SELECT current_user, r.rolsuper, r.rolbypassrls, r.rolreplication OR EXISTS (
    SELECT 1 FROM pg_roles s WHERE s.rolname = %(service)s AND pg_has_role(s.oid, 'member')),
  EXISTS (SELECT 1 FROM pg_roles s WHERE s.rolname = %(service)s)
FROM pg_roles r WHERE r.rolname = current_user"""

_SERVICE_ROLE = "rds_replication"
"""At Amazon nobody can give a role REPLICATION, and a member of this one may replicate."""

_OWN_SCHEMA = """SELECT has_schema_privilege(n.oid, 'USAGE') AND NOT EXISTS (
  SELECT 1 FROM pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) one
  WHERE c.relnamespace = n.oid AND c.relkind = 'r' AND NOT has_table_privilege(c.oid, one))
FROM pg_namespace n WHERE n.nspname = 'slackwater'"""
"""No row: there is no such schema."""

_POLICIES = """SELECT row_security_active(c.oid) FROM pg_class c WHERE c.oid = %s"""


def rights_points(session: Session, servers: Sequence[ServerTable]) -> Iterator[CheckedPoint]:
    """What the role may do that the agent needs, each with the SQL that gives it."""
    for what, statements in _rights(session, servers):
        yield CheckedPoint(what, "".join(f"{one}; " for one in statements).strip())
    yield from parameter_points(session)


def missing_grants(session: Session, servers: Sequence[ServerTable]) -> list[str]:
    """The statements that give the role what it lacks; empty: it has all."""
    return [one for _, statements in _rights(session, servers) for one in statements]


def check_rights(session: Session, tables: Iterable[Table] = ()) -> None:
    """StateError: the role lacks rights, with the statements that give them.

    A table that is not there is left to whoever needs it.
    """
    servers = list[ServerTable]()
    for table in tables:
        with suppress(ConfigError):
            servers.append(read_table(session, table.name))
    if grants := missing_grants(session, servers):
        raise StateError(
            f"role {_role(session)[0]} lacks rights that the agent needs: let a superuser run"
            f" {'; '.join(grants)}"
        )


def may_grant(session: Session) -> bool:
    """Return whether the role may run such statements; a provider lets others than superusers."""
    _, is_super, _, _, is_at_amazon = _role(session)
    return is_super or is_at_amazon


def may_read(session: Session, server: ServerTable) -> bool:
    """Return whether the role may read a table."""
    return _may(session, "table", statement(server.sql), "SELECT")


def may_use_schema(session: Session) -> bool:
    """Return whether the role may use the agent's own schema, if it is there."""
    row = session.execute(_OWN_SCHEMA).fetchone()
    return row is None or bool(row[0])


def may_replicate(session: Session) -> bool:
    """Return whether the role may read the log, as far as rights say."""
    _, is_super, _, replicates, _ = _role(session)
    return is_super or replicates


def replication_point(dsn: str) -> CheckedPoint:
    """Whether the log may be read over a connection: pg_hba.conf may say otherwise."""
    connection = pq.PGconn.connect(agent_conninfo(dsn, replication="database").encode())
    try:
        if connection.status == pq.ConnStatus.OK:
            return CheckedPoint("a replication connection opens")
        said = " ".join(connection.error_message.decode(errors="replace").split())
    finally:
        connection.finish()
    return CheckedPoint(
        "no replication connection opens",
        f"{said}: pg_hba.conf must let the role connect to this database itself (the line of the"
        " database counts, not `replication`), and a pooler must not stand between",
    )


def _rights(
    session: Session, servers: Sequence[ServerTable]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each right, and the statements that give it if it is missing."""
    user, is_super, bypasses, replicates, is_at_amazon = _role(session)
    role = statement(name(user))
    give = f"GRANT {_SERVICE_ROLE} TO {role}" if is_at_amazon else f"ALTER ROLE {role} REPLICATION"
    yield f"role {user} may replicate", () if is_super or replicates else (give,)
    functions = [one for one in _ORIGIN_FUNCTIONS if not _may(session, "function", one, "EXECUTE")]
    yield (
        f"role {user} may use replication origins",
        tuple(f"GRANT EXECUTE ON FUNCTION {one} TO {role}" for one in functions),
    )
    if session.info.server_version // 10_000 >= _OF_PARAMETER:
        may_set = is_super or _may(session, "parameter", "session_replication_role", "SET")
        grant = f"GRANT SET ON PARAMETER session_replication_role TO {role}"
        yield f"role {user} may set session_replication_role", () if may_set else (grant,)
    for server in servers:
        table = statement(server.sql)
        lacking = [one for one in _DML if not _may(session, "table", table, one)]
        grants = (f"GRANT {', '.join(lacking)} ON {table} TO {role}",) if lacking else ()
        yield f"role {user} may read and write table {server.name}", grants
    own = (
        f"GRANT ALL ON SCHEMA slackwater TO {role}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA slackwater TO {role}",
    )
    yield f"role {user} may use schema slackwater", () if may_use_schema(session) else own
    hidden = [one.name for one in servers if not bypasses and _has_policies(session, one)]
    yield (
        f"row security hides nothing from role {user}",
        (f"ALTER ROLE {role} BYPASSRLS",) if hidden else (),
    )


def _role(session: Session) -> tuple[str, bool, bool, bool, bool]:
    """Its name, whether it is a superuser, bypasses row security, may replicate; the service."""
    row = session.execute(_ROLE, {"service": _SERVICE_ROLE}).fetchone()
    user, is_super, bypasses, replicates, is_at_amazon = row or ("", *(False,) * 4)
    return user, is_super, bypasses or is_super, replicates, is_at_amazon


def _may(session: Session, kind: str, on: str, right: str) -> bool:
    query = f"SELECT has_{kind}_privilege(%s, %s)"
    (may,) = session.execute(query.encode(), (on, right)).fetchone() or (False,)
    return bool(may)


def _has_policies(session: Session, server: ServerTable) -> bool:
    (active,) = session.execute(_POLICIES, (server.oid,)).fetchone() or (False,)
    return bool(active)


def parameter_points(session: Session) -> Iterator[CheckedPoint]:
    """What no statement gives: before version 15 only a superuser may set the agent's setting."""
    user, is_super, *_ = _role(session)
    if session.info.server_version // 10_000 < _OF_PARAMETER:
        yield CheckedPoint(
            f"role {user} may set session_replication_role",
            ""
            if is_super
            else "PostgreSQL 14 lets only a superuser do that: let the agent connect as one, or"
            " upgrade the server to 15",
        )
