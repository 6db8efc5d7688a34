"""A SQLite replica with two tables."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.sqlite.sqlite_replica import (
    CREATE_ITEMS,
    CREATE_PAIRS,
    ITEMS,
    PAIRS,
    Replica,
    make,
)


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    """A replica with an ordinary table and one whose names need quoting."""
    made = make(tmp_path / "replica.db", {CREATE_ITEMS: ITEMS, CREATE_PAIRS: PAIRS})
    yield made
    made.client.close()
