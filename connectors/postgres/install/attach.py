"""Makes a database a replica, step by step."""

import logging
from collections.abc import Sequence

import psycopg

from connectors.agent.attaching import InstallStep, ReplicaPlace
from connectors.agent.contract import StoreBusyError
from connectors.postgres.install.steps import MAKES_SLOT, attach_steps
from connectors.postgres.log.slot import WRITING
from connectors.postgres.sql import Session
from streaming.core.model.errors import StateError
from streaming.core.model.table import Table

log = logging.getLogger(__name__)

LOCK_S = 5
"""No lock of a table is waited for longer: whoever wants one that is waited for waits behind it."""
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
    session.execute(f"SET statement_timeout = '{STATEMENT_S}s'".encode())
    for step in wanted:
        blockers = _OPEN
        try:
            for statement in step.statements:
                is_slot = MAKES_SLOT in statement
                blockers = WRITING if is_slot else _OPEN
                lock_s = 0 if is_slot else LOCK_S
                session.execute(f"SET lock_timeout = '{lock_s}s'".encode())
                if is_slot:
                    _log_writing(session)
                session.execute(statement.encode())
        except psycopg.errors.InsufficientPrivilege as error:
            raise StateError(
                f"{error.diag.message_primary}: let somebody who may do it run the statements of"
                f" this step, {step.what} (with --dry-run `slackwater {command}` prints them), then"
                " run it again: it goes on behind it"
            ) from error
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
            (named,) = session.execute(blockers).fetchone() or (None,)
            raise StoreBusyError(
                f"transactions are open that this step waits for, {step.what}:"
                f" {named or 'see pg_stat_activity and pg_prepared_xacts'}; end them, then run"
                f" `slackwater {command}` again: it goes on behind what is done"
            ) from error
    session.execute("RESET lock_timeout")
    session.execute("RESET statement_timeout")
    return [step.what for step in wanted]


def _log_writing(session: Session) -> None:
    """Say which transactions a slot will wait for, so that somebody may end them."""
    (named,) = session.execute(WRITING).fetchone() or (None,)
    if named is not None:
        log.warning(
            "waiting up to %s s for the transactions that are writing, before the slot is made: %s",
            STATEMENT_S,
            named,
        )
