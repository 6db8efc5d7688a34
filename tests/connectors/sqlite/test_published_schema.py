"""What the database declares is published whole once, and by its digest afterwards."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from connectors.sqlite.store import SqliteStore
from streaming.core.model.table import ColumnType, Table
from streaming.core.schema.document import UNNAMED, schema_of

TABLE = Table("t", ("id",), {"id": ColumnType.INT64, "name": ColumnType.TEXT})


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A file with the table."""
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as client:
        client.execute("CREATE TABLE t (id INT PRIMARY KEY NOT NULL, name TEXT)")
    return path


def published(path: Path, *statements: str) -> list[bool]:
    """What an agent publishes from its start on, and after each statement: with a document?"""
    found = []
    with closing(SqliteStore.open(path, 1, [TABLE])) as store:
        for statement in ("SELECT 1", *statements):
            with closing(sqlite3.connect(path)) as client, client:
                client.execute(statement)
            store.check_schema()
            while (schema := store.unpublished_schema()) is not None:
                found.append(schema.document is not None)
                store.mark_schema_published(schema)
    return found


def test_a_later_start_says_only_that_nothing_is_new(database: Path) -> None:
    """A start costs some bytes, however large the schema is."""
    assert published(database) == [True]
    assert published(database) == [False]


def test_a_changed_schema_is_published_at_once(database: Path) -> None:
    """What the agent's own tables and another table do is no change of it."""
    changes = ("CREATE UNIQUE INDEX i ON t (name)", "CREATE TABLE mine (x)", "DROP INDEX i")

    assert published(database, *changes) == [True, True, True]


def test_what_was_not_acknowledged_is_published_again(database: Path) -> None:
    """The topic may not hold it."""
    with closing(SqliteStore.open(database, 1, [TABLE])) as store:
        first = store.unpublished_schema()

        assert first is not None
        assert store.unpublished_schema() == first
        assert schema_of(first.document or "", "a record").digest == first.digest


def test_another_generation_of_the_hub_gets_the_document(database: Path) -> None:
    """A hub whose state was put back may have lost it."""
    published(database)
    with closing(sqlite3.connect(database)) as client, client:
        client.execute("UPDATE _slackwater_position SET generation = 2")

    assert published(database) == [True]


def test_a_document_fits_into_a_record(database: Path) -> None:
    """One that does not would never be acknowledged, and the agent would wait for ever."""
    with closing(SqliteStore.open(database, 1, [TABLE], record_bytes=1_100)) as store:
        schema = store.unpublished_schema()

    assert schema is not None
    assert schema_of(schema.document or "", "a record").left_out == (UNNAMED,)


def test_a_text_that_is_no_utf_8_ends_nothing(database: Path) -> None:
    """An application of another encoding may have written the trigger."""
    with closing(sqlite3.connect(database)) as client, client:
        client.execute(
            "CREATE TRIGGER mine AFTER INSERT ON t WHEN NEW.name = 'X' BEGIN SELECT 1; END"
        )
        client.execute("PRAGMA writable_schema = ON")
        client.execute(
            "UPDATE sqlite_schema SET sql = CAST(replace(CAST(sql AS BLOB), x'58', x'ff') AS TEXT)"
            " WHERE name = 'mine'"
        )

    assert published(database) == [True]
