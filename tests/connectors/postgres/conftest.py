"""A database of a real PostgreSQL for each test."""

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest

from connectors.postgres.log import reader
from connectors.postgres.values.text import TEXT_SETTINGS
from tests.connectors.conformance.postgres_database import PostgresDatabase
from tests.connectors.postgres.scratch_server import running_server

_NUMBERS = count(1)
READ_S = 30.0


@pytest.fixture(autouse=True)
def read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round of a store reads all that is committed, however slow the server is under load.

    An agent asks again in its next round; a test asks once.
    """
    monkeypatch.setattr(reader, "CATCH_UP_S", READ_S)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The connection string of a server."""
    with running_server() as server:
        yield server


@pytest.fixture
def dsn(postgres: str) -> str:
    """The connection string of a new database, with the agent's text settings."""
    return _made(postgres)


@pytest.fixture(scope="module")
def module_dsn(postgres: str) -> str:
    """That of a database for all tests of a module, which empty it: to make one takes long."""
    return _made(postgres)


@pytest.fixture
def emptied_dsn(module_dsn: str) -> str:
    """The same, without tables."""
    with psycopg.connect(module_dsn, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("GRANT ALL ON SCHEMA public TO PUBLIC")
    return module_dsn


def _made(postgres: str) -> str:
    name = f"test_{next(_NUMBERS)}"
    with psycopg.connect(f"{postgres} dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    options = " ".join(f"-c {setting}={value}" for setting, value in TEXT_SETTINGS.items())
    return f"{postgres} dbname={name} options='{options}'"


@pytest.fixture
def attached(dsn: str) -> Iterator[PostgresDatabase]:
    """A database with the table of the conformance tests, for a store."""
    database = PostgresDatabase(dsn)
    yield database
    database.close()
