"""A table that is copied and renamed, as docs/sqlite.md says: SQLite cannot alter it otherwise."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connectors.sqlite.install.install import install
from connectors.sqlite.journal import snapshot
from connectors.sqlite.transaction import truncate
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import ColumnType, Table

PAGE = Path(__file__).parents[3] / "docs" / "sqlite.md"
RID = 1
COLUMNS = {"id": ColumnType.INT64, "name": ColumnType.TEXT}
TABLES = [
    Table("customers", ("id",), COLUMNS),
    Table("orders", ("id",), {"id": ColumnType.INT64, "customer": ColumnType.INT64}),
]
SCHEMA = """
PRAGMA foreign_keys = ON;
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY, customer INT REFERENCES customers (id) ON DELETE CASCADE
);
"""
ROWS = """
INSERT INTO customers VALUES (1, 'a'), (2, 'b');
INSERT INTO orders VALUES (10, 1);
"""


def steps() -> str:
    """The statements of the page."""
    found = re.search(r"```sql\n(PRAGMA foreign_keys.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def journal(connection: sqlite3.Connection) -> list[tuple[str, str, str | None]]:
    """What was captured, in order: table, op and key."""
    return connection.execute(
        'SELECT "table", op, key FROM _slackwater_journal ORDER BY rowid'
    ).fetchall()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A replica with foreign keys, and rows that it captured."""
    with closing(sqlite3.connect(tmp_path / "r.db", isolation_level=None)) as connection:
        connection.executescript(SCHEMA)
        install(connection, RID, TABLES)
        connection.executescript(ROWS)
        yield connection


def test_a_rebuild_captures_nothing_and_goes_on(database: sqlite3.Connection) -> None:
    """Its rows are as they were: neither deleted elsewhere, nor told again."""
    before = journal(database)

    database.executescript(steps())
    with pytest.raises(ConfigError, match="customers"):
        install(database, RID, TABLES)
    install(database, RID, TABLES, rows_are_shared=True)

    assert journal(database) == before
    assert snapshot.named(database) is None
    assert database.execute("SELECT id, name, note FROM customers").fetchall() == [
        (1, "a", None),
        (2, "b", None),
    ]
    install(database, RID, TABLES)
    database.execute("UPDATE customers SET name = 'c' WHERE id = 2")
    database.execute("PRAGMA foreign_keys = ON")
    database.execute("DELETE FROM customers WHERE id = 1")
    truncate(database, "customers")
    assert [one for one in journal(database)[len(before) :] if one[1]] == [
        ("customers", "update", '{"id":"2"}'),
        ("orders", "delete", '{"id":"10"}'),
        ("customers", "delete", '{"id":"1"}'),
        ("customers", "truncate", None),
    ]


def test_without_the_pragma_sqlite_refuses_and_all_is_as_before(
    database: sqlite3.Connection,
) -> None:
    """So that nobody has a table without triggers and does not know it."""
    refused = steps().replace("PRAGMA legacy_alter_table = ON;", "")

    with pytest.raises(sqlite3.OperationalError, match="_slackwater_truncate_customers: no such"):
        database.executescript(refused)
    database.rollback()
    database.execute("INSERT INTO customers VALUES (3, 'c')")

    assert journal(database)[-1] == ("customers", "insert", '{"id":"3"}')
