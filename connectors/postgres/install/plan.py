"""What attaching and detaching will do, for a person who then decides."""

from collections.abc import Iterator, Sequence

from connectors.agent.attaching import InstallPlan, InstallStep, ReplicaPlace
from connectors.agent.found import CheckedPoint
from connectors.postgres.check.rights import (
    may_replicate,
    may_use_schema,
    parameter_points,
    replication_point,
)
from connectors.postgres.check.server_points import server_points
from connectors.postgres.check.table_faults import table_faults
from connectors.postgres.install.sequences import sequence_notes
from connectors.postgres.install.steps import attach_steps
from connectors.postgres.names import PUBLICATION, local_origin, server_name
from connectors.postgres.schema.catalog import read_table
from connectors.postgres.sql import Session, literal
from streaming.core.model.table import Table

_IDENTITIES_BACK = """DO $$ DECLARE one record; BEGIN
  IF to_regclass('slackwater.identity') IS NULL THEN RETURN; END IF;
  FOR one IN SELECT i.* FROM slackwater.identity i WHERE to_regclass(i."table") IS NOT NULL LOOP
    EXECUTE format('ALTER TABLE %s REPLICA IDENTITY %s', one."table", CASE one.identity
      WHEN 'd' THEN 'DEFAULT' WHEN 'n' THEN 'NOTHING' WHEN 'f' THEN 'FULL'
      ELSE format('USING INDEX %I', one.index) END);
  END LOOP;
END $$"""

_UNREADABLE = (
    "the database has a schema slackwater that the role may not read: what is left to do besides is"
    " known when it has the rights; run the same command again then"
)


def attach_plan_of(
    session: Session,
    dsn: str,
    replica: ReplicaPlace,
    tables: Sequence[Table],
    *,
    rows_are_shared: bool,
) -> InstallPlan:
    """The checks, the steps, and what to do about sequences; nothing is changed."""
    faults = [*_table_points(session, tables)]
    if any(one.to_do for one in faults):
        return InstallPlan((), (*server_points(session), *faults))
    servers = [read_table(session, table.name) for table in tables]
    steps = attach_steps(session, replica, tables, rows_are_shared=rows_are_shared)
    points = (*server_points(session), *_role_points(session, dsn), *faults)
    notes = [*sequence_notes(session, servers, replica)]
    if not may_use_schema(session):
        notes.insert(0, _UNREADABLE)
    return InstallPlan(tuple(steps), points, tuple(notes))


def _table_points(session: Session, tables: Sequence[Table]) -> Iterator[CheckedPoint]:
    for table in tables:
        listed = [*table_faults(session, table)] or [""]
        yield from (CheckedPoint(f"table {table.name}", fault) for fault in listed)


def _role_points(session: Session, dsn: str) -> Iterator[CheckedPoint]:
    """What no statement of the first step gives, nor makes wrong."""
    yield from parameter_points(session)
    if may_replicate(session):
        yield replication_point(dsn)


def detach_plan_offline(database: str, replica: str, why: str) -> InstallPlan:
    """What to run when the server can be reached again, of which nothing is known now.

    A part of it may be done already, by a detach that was interrupted.
    """
    name = server_name(database, replica)
    slot = f"FROM pg_replication_slots WHERE slot_name = {literal(name)}"
    origins = f"{literal(name)}, {literal(local_origin(name))}"
    origin = f"FROM pg_replication_origin WHERE roname IN ({origins})"
    steps = (
        (f"replication slot {name}", f"SELECT pg_drop_replication_slot(slot_name) {slot}"),
        (f"publication {PUBLICATION}", f"DROP PUBLICATION IF EXISTS {PUBLICATION}"),
        (f"replication origins of {name}", f"SELECT pg_replication_origin_drop(roname) {origin}"),
        ("REPLICA IDENTITY of each table as it was", _IDENTITIES_BACK),
        ("schema slackwater", "DROP SCHEMA IF EXISTS slackwater CASCADE"),
    )
    holds = (
        f"{why}. While slot {name} is there its server keeps all its log, until the disk is full or"
        " max_slot_wal_keep_size is reached: detach it again later, or let somebody run the"
        f" statements in database {database}. They give up what is not published yet, and rows that"
        " are saved there"
    )
    return InstallPlan(
        tuple(InstallStep(what, (one,)) for what, one in steps),
        (CheckedPoint("the server", holds),),
    )
