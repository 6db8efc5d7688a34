"""The databases that must conform: each test runs on every one of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.conformance.database_under_test import DatabaseUnderTest, SqliteFile


@pytest.fixture(params=["sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DatabaseUnderTest]:
    """One of them, with its table and without an agent so far."""
    match request.param:
        case "sqlite":
            made = SqliteFile(tmp_path)
            yield made
            made.close()
        case other:
            raise AssertionError(other)
