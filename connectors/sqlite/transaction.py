"""A local transaction, and what SQLite itself has no word for: groups of changes, and truncates."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from streaming.core.model.change import Op

BEGIN_GROUP = "INSERT INTO _slackwater_write (op) VALUES ('begin')"
END_GROUP = "INSERT INTO _slackwater_write (op) VALUES ('commit')"
"""The last statement before COMMIT; in any language these two make a group."""


@contextmanager
def atomic(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Commit what the block does, or roll it back if it or its commit fails.

    The connection is in autocommit mode. `begin`: "BEGIN" for what only reads.
    """
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One transaction whose changes share a prim_csn; without it each change is one of its own.

    SQLite has no SQL hook for the commit of a transaction, so the group is announced by
    BEGIN_GROUP behind BEGIN IMMEDIATE and ended by END_GROUP before COMMIT.
    """
    with atomic(connection):
        connection.execute(BEGIN_GROUP)
        yield connection
        connection.execute(END_GROUP)


def truncate(connection: sqlite3.Connection, table: str) -> None:
    """Delete all rows of a replicated table as one change: whoever applies it empties the table.

    `DELETE FROM table` is a change of each row instead: where another replica has written a row
    meanwhile, only the delete of that row loses. A truncate then loses as a whole. In any language:
    INSERT INTO _slackwater_write (op, "table") VALUES ('truncate', 'the table').
    """
    values = (Op.TRUNCATE.value, table)
    connection.execute('INSERT INTO _slackwater_write (op, "table") VALUES (?, ?)', values)
