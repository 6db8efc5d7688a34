"""The agent of one PostgreSQL replica: its database, opened and locked, under the agent's loop."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from connectors.agent.found import IsKnown, KnownOwn
from connectors.agent.new_start import new_start
from connectors.agent.settings import AgentSettings
from connectors.postgres import snapshot
from connectors.postgres.check.rights import check_rights, may_use_schema
from connectors.postgres.connection import LOADS_NOTHING, connected
from connectors.postgres.install.attachment import attached
from connectors.postgres.install.system import read_position
from connectors.postgres.sql import Session
from connectors.postgres.store import PostgresStore, store_errors
from streaming.core.model.errors import ConfigError, StateError


@contextmanager
def open_store(settings: AgentSettings) -> Iterator[PostgresStore]:
    """The replica's database, closed at the end; StoreBusyError if another agent has it open."""
    if settings.load is not None:
        raise ConfigError(LOADS_NOTHING)
    dsn = str(settings.database)
    with connected(dsn) as session:
        _check(session, settings)
    with closing(
        PostgresStore.open(
            dsn,
            settings.replica,
            settings.tables,
            record_bytes=settings.record_bytes,
            skew_s=settings.skew_s,
        )
    ) as store:
        with store_errors():
            _begin_snapshot(store.session, settings)
        yield store


def reinit(settings: AgentSettings, known: KnownOwn, is_known: IsKnown, path: Path) -> int:
    """Empty the replica's database so that its agent starts anew; returns the number of saved rows.

    `known`: what the hub knows of the replica, which its topic may hold no more. The rows that the
    hub does not have so are saved at the path.
    """
    with open_store(replace(settings, rows_are_shared=True, takes_snapshot=False)) as store:
        return store.reinit(new_start(settings, store.compared_up_to(), known), is_known, path)


def _check(session: Session, settings: AgentSettings) -> None:
    """StateError: it is no replica, or another one, or the role lacks rights."""
    if not may_use_schema(session):
        check_rights(session, settings.tables)
    found, rid = attached(session), read_position(session).rid
    if (found.replica, rid) != (settings.replica, settings.rid):
        raise StateError(
            f"the database is attached as replica {found.replica} with rid {rid}, not as"
            f" {settings.replica} with rid {settings.rid}: correct --replica or the configuration,"
            " or detach it (`slackwater detach`) and attach it anew"
        )
    check_rights(session, settings.tables)


def _begin_snapshot(session: Session, settings: AgentSettings) -> None:
    """Tell all rows if that is wanted; none, if it is not and no row is told yet."""
    if settings.takes_snapshot and snapshot.named(session) is None:
        snapshot.begin(session, [table.name for table in settings.tables])
    elif settings.rows_are_shared:
        session.execute(
            "DELETE FROM slackwater.snapshot WHERE NOT EXISTS"
            " (SELECT 1 FROM slackwater.snapshot WHERE told <> 0 OR last IS NOT NULL)"
        )
