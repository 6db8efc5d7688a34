"""The agent of one SQLite replica: its database, opened and locked, under the agent's loop."""

import fcntl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from connectors.agent.process import run_process
from connectors.agent.settings import AgentSettings
from connectors.sqlite.store import SqliteStore
from streaming.core.model.errors import StateError


def run_agent(settings: AgentSettings) -> int:
    """Run the agent until SIGTERM or SIGINT; its exit code, 1 with the reason if it failed."""
    return run_process(settings, open_store)


@contextmanager
def open_store(settings: AgentSettings) -> Iterator[SqliteStore]:
    """The replica's database, closed at the end; StateError if another agent has it open."""
    with (
        exclusive(settings.database),
        closing(
            SqliteStore.open(
                settings.database,
                settings.rid,
                settings.tables,
                record_bytes=settings.record_bytes,
                rows_are_shared=settings.rows_are_shared,
            )
        ) as store,
    ):
        yield store


@contextmanager
def exclusive(database: Path) -> Iterator[None]:
    """Lock the database against a second agent; StateError if one runs, or there is no file."""
    if not database.is_file():
        raise StateError(f"there is no database {database}: check the path given to the agent")
    with database.with_name(f"{database.name}.agent").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateError(f"another agent has {database} open: stop it first") from error
        yield
