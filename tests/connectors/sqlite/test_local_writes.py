"""Writes that stay in a SQLite file: what keeps them from staying open, and from being told."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connectors.sqlite.install.local_writes import LOCAL
from tests.connectors.conformance.database_under_test import SqliteFile
from tests.connectors.conformance.hub_batches import changes

BEGIN = "INSERT INTO _slackwater_local (op) VALUES ('begin')"
END = "INSERT INTO _slackwater_local (op) VALUES ('end')"
INSERT = "INSERT INTO items (id) VALUES (1)"


@pytest.fixture
def client(database: SqliteFile) -> Iterator[sqlite3.Connection]:
    """A client of a replica, in autocommit mode, with foreign keys on."""
    database.store()
    with closing(sqlite3.connect(database.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        yield connection


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteFile]:
    """A file with a table, and without an agent so far."""
    made = SqliteFile(tmp_path)
    yield made
    made.close()


def applying(client: sqlite3.Connection) -> int:
    """Whether writes are captured (0), are the agent's (1), or stay here (2)."""
    (found,) = client.execute("SELECT applying FROM _slackwater_origin").fetchone()
    return int(found)


def test_no_commit_leaves_them_open(client: sqlite3.Connection, database: SqliteFile) -> None:
    """Else what everybody writes from then on would be told to nobody."""
    client.execute("BEGIN")
    client.execute(BEGIN)
    client.execute(INSERT)
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        client.execute("COMMIT")
    assert applying(client) == LOCAL
    client.execute("PRAGMA foreign_keys = OFF")  # within a transaction it does nothing
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        client.execute("COMMIT")

    client.execute(END)
    client.execute("COMMIT")

    assert applying(client) == 0
    client.execute("UPDATE items SET name = 'a'")
    assert len(changes(database.store())) == 1


@pytest.mark.parametrize("statement", [BEGIN, BEGIN.replace("INSERT", "INSERT OR IGNORE")])
def test_a_statement_alone_opens_nothing(client: sqlite3.Connection, statement: str) -> None:
    """Without BEGIN it would be its own transaction."""
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        client.execute(statement)

    assert applying(client) == 0


def test_an_end_without_a_begin_is_refused(client: sqlite3.Connection) -> None:
    """A client that goes on behind a begin that failed has written for everybody."""
    client.execute("BEGIN")
    client.execute(INSERT)

    with pytest.raises(sqlite3.IntegrityError, match="goes to all replicas: ROLLBACK"):
        client.execute(END)

    assert applying(client) == 0


def test_without_foreign_keys_they_are_refused(client: sqlite3.Connection) -> None:
    """Then nothing would keep a commit from leaving them open."""
    client.execute("PRAGMA foreign_keys = OFF")
    client.execute("BEGIN")

    with pytest.raises(sqlite3.IntegrityError, match="PRAGMA foreign_keys = ON before BEGIN"):
        client.execute(BEGIN)

    assert applying(client) == 0


@pytest.mark.parametrize(
    ("before", "statement", "says"),
    [
        (BEGIN, BEGIN, "already"),
        ("SELECT 1", BEGIN.replace("begin", "start"), "begin or end"),
        ("SELECT 1", BEGIN.replace("'begin'", "NULL"), "begin or end"),
        (BEGIN, "INSERT INTO _slackwater_write VALUES ('truncate', 'items', 0, 0, 0)", "DELETE"),
    ],
)
def test_what_is_meant_otherwise_is_refused(
    client: sqlite3.Connection, before: str, statement: str, says: str
) -> None:
    """A statement that did nothing in silence would have the writes behind it replicated."""
    client.execute("BEGIN")
    client.execute(before)

    with pytest.raises(sqlite3.IntegrityError, match=says):
        client.execute(statement)


def test_what_is_rolled_back_closes_them(client: sqlite3.Connection, database: SqliteFile) -> None:
    """And counts nothing."""
    client.execute("BEGIN")
    client.execute(BEGIN)
    client.execute(INSERT)
    client.execute("ROLLBACK")

    assert applying(client) == 0
    assert database.store().local_writes() == {}


def test_a_write_behind_them_has_the_row_as_it_was_before_it(
    client: sqlite3.Connection, database: SqliteFile
) -> None:
    """In one transaction, within the same millisecond: what was recorded before is out of date."""
    client.execute("BEGIN")
    client.execute("INSERT INTO items (id, name) VALUES (1, 'first')")
    client.execute(BEGIN)
    client.execute("UPDATE items SET name = 'here'")
    client.execute(END)
    client.execute("INSERT OR REPLACE INTO items (id, name) VALUES (1, 'last')")
    client.execute("COMMIT")

    _, last = changes(database.store())
    assert '"name":"here"' in (last.before or "")


def test_a_file_of_an_agent_before_is_given_them(
    client: sqlite3.Connection, database: SqliteFile
) -> None:
    """By its next start; what it holds stays."""
    client.execute(INSERT)
    made = client.execute(
        "SELECT type, name FROM sqlite_schema WHERE name LIKE '\\_slackwater\\_local%' ESCAPE '\\'"
        " OR name LIKE '%write\\_local' ESCAPE '\\'"
    ).fetchall()
    for kind in ("trigger", "view", "table"):
        for name in (name for one, name in made if one == kind):
            client.execute(f'DROP {kind} "{name}"')

    store = database.store()
    client.execute("BEGIN")
    client.execute(BEGIN)
    client.execute("UPDATE items SET name = 'here'")
    client.execute(END)
    client.execute("COMMIT")

    assert len(changes(store)) == 1
    assert [(name, one.rows) for name, one in store.local_writes().items()] == [("items", 1)]
