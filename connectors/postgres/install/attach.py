"""Makes a database a replica, step by step."""

from collections.abc import Sequence

import psycopg

from connectors.agent.attaching import InstallStep, ReplicaKey
from connectors.postgres.install.steps import attach_steps
from connectors.postgres.sql import Session
from streaming.core.model.errors import StateError
from streaming.core.model.table import Table


def attach(
    session: Session, replica: ReplicaKey, tables: Sequence[Table], *, rows_are_shared: bool = False
) -> list[str]:
    """Do the steps that are not done yet; returns which these were.

    The session is in autocommit mode, for a slot is made outside of a transaction that has written.
    StateError: a right is missing, with what somebody who has it must run.
    """
    steps = attach_steps(session, replica, tables, rows_are_shared=rows_are_shared)
    return carry_out(session, steps, "attach")


def carry_out(session: Session, steps: Sequence[InstallStep], command: str) -> list[str]:
    """Run the statements of these steps; StateError says what to do if a right is missing.

    `command`: of which they are.
    """
    wanted = [step for step in steps if step.statements]
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
    return [step.what for step in wanted]
