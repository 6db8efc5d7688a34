"""The databases that must conform: each test runs on every one of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.conformance.database_under_test import DatabaseUnderTest, SqliteFile
from tests.connectors.conformance.postgres_database import PostgresDatabase
from tests.connectors.postgres.conftest import dsn, postgres, read_to_the_end

__all__ = ("dsn", "postgres", "read_to_the_end")


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DatabaseUnderTest]:
    """One of them, with its table and without an agent so far."""
    match request.param:
        case "sqlite":
            made = SqliteFile(tmp_path)
            yield made
            made.close()
        case "postgres":
            database = PostgresDatabase(request.getfixturevalue("dsn"))
            yield database
            database.close()
        case unknown:
            raise AssertionError(unknown)
