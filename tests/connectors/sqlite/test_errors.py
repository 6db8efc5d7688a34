"""What an agent says of a file with which SQLite cannot work: what it is, and what to do."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from connectors.agent.contract import StoreBusyError, StoreError
from connectors.sqlite.store import SqliteStore
from streaming.core.model.table import ColumnType, Table

TABLE = Table("t", ("id",), {"id": ColumnType.INT64})


def test_what_was_never_a_database_is_not_called_damaged(tmp_path: Path) -> None:
    """Somebody named another file: a backup would not help."""
    file = tmp_path / "notes.txt"
    file.write_text("shopping\n" * 200)

    with pytest.raises(
        StoreError, match=r"this file is no SQLite database .*: look at the path"
    ) as failed:
        SqliteStore.open(file, 1, [TABLE])

    assert not isinstance(failed.value, StoreBusyError), "an agent would try it for ever"
    assert file.read_text() == "shopping\n" * 200


def test_a_schema_of_a_newer_sqlite_is_not_called_damaged(tmp_path: Path) -> None:
    """SQLite reports it as corruption, and the file is whole."""
    file = tmp_path / "newer.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as client:
        client.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        client.execute("PRAGMA writable_schema = 1")
        client.execute("UPDATE sqlite_schema SET sql = sql || ' SIDEWAYS'")

    with pytest.raises(StoreError, match=r"cannot read the schema of the database .*SIDEWAYS"):
        SqliteStore.open(file, 1, [TABLE])
