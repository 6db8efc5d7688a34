"""Makes a database a replica, step by step."""

from collections.abc import Sequence

import psycopg

from connectors.agent.attaching import InstallStep, ReplicaPlace
from connectors.agent.contract import StoreBusyError
from connectors.postgres.install.steps import attach_steps
from connectors.postgres.sql import Session
from streaming.core.model.errors import StateError
from streaming.core.model.table import Table

LOCK_S = 5
"""No lock is waited for longer: whoever wants one that is waited for waits behind it."""
STATEMENT_S = 60
"""A slot is not made before all transactions that have written end; no wait is longer."""

_OPEN = """SELECT string_agg(
  format('pid %s of %s since %s', pid, usename, xact_start::timestamp(0)), ', ' ORDER BY xact_start)
FROM pg_stat_activity WHERE xact_start < now() AND pid <> pg_backend_pid()
  AND backend_type = 'client backend'"""


def attach(
    session: Session,
    replica: ReplicaPlace,
    tables: Sequence[Table],
    *,
    rows_are_shared: bool = False,
) -> list[str]:
    """Do the steps that are not done yet; returns which these were.

    The session is in autocommit mode, for a slot is made outside of a transaction that has written.
    StateError: a right is missing, with what somebody who has it must run.
    """
    steps = attach_steps(session, replica, tables, rows_are_shared=rows_are_shared)
    return carry_out(session, steps, "attach")


def carry_out(session: Session, steps: Sequence[InstallStep], command: str) -> list[str]:
    """Run the statements of these steps; StateError says what to do if a right is missing.

    `command`: of which they are. StoreBusyError names the transactions that are in the way.
    """
    wanted = [step for step in steps if step.statements]
    session.execute(f"SET lock_timeout = '{LOCK_S}s'".encode())
    session.execute(f"SET statement_timeout = '{STATEMENT_S}s'".encode())
    for step in wanted:
        try:
            for statement in step.statements:
                session.execute(statement.encode())
        except psycopg.errors.InsufficientPrivilege as error:
            raise StateError(
                f"{error.diag.message_primary}: let somebody who may do it run the statements of"
                f" this step, {step.what} (with --dry-run `slackwater {command}` prints them), then"
                " run it again: it goes on behind it"
            ) from error
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
            (named,) = session.execute(_OPEN).fetchone() or (None,)
            raise StoreBusyError(
                f"transactions are open that this step waits for, {step.what}:"
                f" {named or 'see pg_stat_activity and pg_prepared_xacts'}; end them, then run"
                f" `slackwater {command}` again: it goes on behind what is done"
            ) from error
    session.execute("RESET lock_timeout")
    session.execute("RESET statement_timeout")
    return [step.what for step in wanted]
