"""Groups the changes of one SQLite transaction, so that the hub makes them eligible together."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

BEGIN_GROUP = "INSERT INTO _slackwater_write (op) VALUES ('begin')"
END_GROUP = "INSERT INTO _slackwater_write (op) VALUES ('commit')"
"""The last statement before COMMIT; in any language these two make a group."""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One transaction whose changes share a prim_csn; without it each change is one of its own.

    SQLite has no SQL hook for the commit of a transaction, so the group is announced by
    BEGIN_GROUP behind BEGIN IMMEDIATE and ended by END_GROUP before COMMIT.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(BEGIN_GROUP)
        yield connection
        connection.execute(END_GROUP)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
