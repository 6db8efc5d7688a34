"""The kinds of databases with which one of the replicas of a story is tried."""

from collections.abc import Iterator

import pytest

from tests.connectors.postgres.scratch_server import (
    ScratchServer,
    running_server,
    scratch_folder,
)

KINDS = ("sqlite", pytest.param("postgres", marks=pytest.mark.more))


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The connection string of a server in which each story has databases of its own."""
    with running_server() as conninfo:
        yield conninfo


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> str | None:
    """A PostgreSQL server for one of the replicas; None: it is a file of SQLite as the others."""
    return request.getfixturevalue("postgres") if request.param == "postgres" else None


@pytest.fixture(params=KINDS)
def own_server(request: pytest.FixtureRequest) -> Iterator[ScratchServer | None]:
    """The same with a server that the story may stop and put back, for one replica alone."""
    if request.param == "sqlite":
        yield None
        return
    with scratch_folder() as folder:
        made = ScratchServer.create(folder)
        made.start()
        yield made
