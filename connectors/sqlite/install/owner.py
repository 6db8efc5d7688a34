"""Whose database a file is: the name of its replica, which its agent writes into it."""

import sqlite3

from connectors.sqlite.install.system import column_names
from streaming.core.model.errors import StateError


def write_owner(connection: sqlite3.Connection, replica: str) -> None:
    """Write the name of the replica whose agent has the database open."""
    connection.execute(
        "UPDATE _slackwater_origin SET replica = ?1 WHERE replica IS NOT ?1", (replica,)
    )


def owner_fault(connection: sqlite3.Connection, replica: str | None) -> str | None:
    """What is wrong if the database is another replica's; None: nothing, or nobody knows.

    An agent of before wrote no name.
    """
    if replica is None or "replica" not in column_names(connection, "_slackwater_origin"):
        return None
    (owner,) = connection.execute("SELECT replica FROM _slackwater_origin").fetchone()
    if owner in (None, replica):
        return None
    return (
        f"the database is that of replica {owner}, not of {replica}: check the path and the name of"
        " the replica"
    )


def check_owner(connection: sqlite3.Connection, replica: str | None) -> None:
    """Raise StateError if the database is another replica's."""
    if fault := owner_fault(connection, replica):
        raise StateError(f"{fault}; nothing was changed")
