"""How the agent connects: its connections read text in one form, and have one name.

The name, and the settings, are those of whatever connects for the agent or for a command.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from connectors.agent.contract import StoreLostError
from connectors.postgres.errors import store_error
from connectors.postgres.sql import Session
from connectors.postgres.values.text import TEXT_SETTINGS

APPLICATION = "slackwater"
"""The name of its connections in pg_stat_activity."""

CONNECT_TIMEOUT_S = 10

LOADS_NOTHING = "--load is for SQLite: PostgreSQL has its functions in the database"
"""Nothing is registered on a connection."""

SESSION_SETTINGS: Mapping[str, str] = {
    **TEXT_SETTINGS,
    # what a role has against forgotten sessions would end the agent's, which live for ever
    "statement_timeout": "0",
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    # a backend whose agent's machine is gone holds slot and origin until the server notices
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}


def agent_conninfo(dsn: str, **more: str) -> str:
    """The connection string, with the agent's settings behind its own options."""
    given = conninfo_to_dict(dsn)
    settings = [f"-c {name}={value}" for name, value in SESSION_SETTINGS.items()]
    options = " ".join([*filter(None, [str(given.get("options") or "")]), *settings])
    timeout_s = given.get("connect_timeout") or CONNECT_TIMEOUT_S
    return make_conninfo(
        dsn, options=options, application_name=APPLICATION, connect_timeout=timeout_s, **more
    )


class UnreachableError(StoreLostError):
    """The server does not answer, or lets nobody in."""


@contextmanager
def connected(dsn: str) -> Iterator[Session]:
    """A connection in autocommit mode; StoreError, in one line, for whatever the server refuses."""
    try:
        with psycopg.connect(agent_conninfo(dsn), autocommit=True) as session:
            yield session
    except psycopg.OperationalError as error:
        if error.sqlstate is not None:
            raise store_error(error) from error
        raise UnreachableError(_unreachable(error)) from error
    except psycopg.Error as error:
        raise store_error(error) from error


def _unreachable(error: psycopg.OperationalError) -> str:
    return f"the database cannot be reached: {' '.join(str(error).split())}"
