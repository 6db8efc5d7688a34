"""The kinds of databases with which one of the replicas of a story is tried."""

from collections.abc import Iterator

import pytest

from tests.connectors.postgres.scratch_server import running_server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.more)])
def server(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """A PostgreSQL server for one of the replicas; None: it is a file of SQLite as the others."""
    if request.param == "sqlite":
        yield None
        return
    with running_server() as conninfo:
        yield conninfo
