"""Real agents of PostgreSQL databases, and clients that know nothing of them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from deploy import programs
from tests.harness.hub_process import TIMEOUT_S
from tests.harness.site import Site
from tests.harness.sqlite_agents import agent

CREATE = "CREATE TABLE t (k text PRIMARY KEY, v text)"


@dataclass(frozen=True, slots=True)
class PostgresSite:
    """A database of a server; `conninfo`: of the server, without a database."""

    conninfo: str
    name: str

    @property
    def dsn(self) -> str:
        """The address as people give it to a command."""
        parts = dict(part.split("=") for part in self.conninfo.split())
        return f"postgresql://{parts['user']}@{parts['host']}:{parts['port']}/{self.name}"

    def create(self, statement: str = CREATE) -> None:
        """Make the database with its table."""
        with psycopg.connect(f"{self.conninfo} dbname=postgres", autocommit=True) as client:
            client.execute(f"CREATE DATABASE {self.name}".encode())
        self.execute(statement)

    def execute(self, statement: str, *values: str) -> None:
        """Run a statement as any client would."""
        with psycopg.connect(self.dsn, autocommit=True) as client:
            client.execute(statement.encode(), values)

    def run_script(self, script: str) -> None:
        """Run what is printed for whoever has the rights, as they would."""
        psql = programs.find("psql")
        assert psql, "psql is not installed: `make programs`"
        command = [str(psql), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", self.dsn]
        subprocess.run(command, input=script, check=True, text=True, stdout=subprocess.DEVNULL)

    def rows(self) -> dict[str, str]:
        """What the table holds."""
        with psycopg.connect(self.dsn) as client:
            return dict(client.execute("SELECT k, v FROM t").fetchall())


@contextmanager
def agent_of(at: Site, name: str, dsn: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A replica's agent at work; it ends in order with the block."""
    one = agent(at, name, dsn, *arguments)
    try:
        yield one
    finally:
        one.terminate()
        _, errors = one.communicate(timeout=TIMEOUT_S)
    assert one.returncode == 0, errors
