"""The agent of one SQLite replica: its database, opened and locked, under the agent's loop."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from connectors.agent.found import IsKnown, KnownOwn
from connectors.agent.new_start import new_start
from connectors.agent.settings import AgentSettings
from connectors.sqlite.file import exclusive
from connectors.sqlite.install.owner import write_owner
from connectors.sqlite.journal.entries import JournalBound
from connectors.sqlite.load import prepare_of
from connectors.sqlite.store import SqliteStore
from streaming.core.model.errors import ConfigError


@contextmanager
def open_store(settings: AgentSettings) -> Iterator[SqliteStore]:
    """The replica's database, closed at the end; StateError if another agent has it open."""
    file = Path(settings.database.place)
    with (
        exclusive(file),
        closing(
            SqliteStore.open(
                file,
                settings.rid,
                settings.tables,
                record_bytes=settings.record_bytes,
                skew_s=settings.skew_s,
                rows_are_shared=settings.rows_are_shared,
                takes_snapshot=settings.takes_snapshot,
                journal_bound=JournalBound(settings.journal_rows),
                prepare=prepare_of(settings.load),
            )
        ) as store,
    ):
        write_owner(store.connection, settings.replica)
        yield store


def reinit(settings: AgentSettings, known: KnownOwn, is_known: IsKnown, path: Path) -> int:
    """Empty the replica's database so that its agent starts anew; returns the number of saved rows.

    `known`: what the hub knows of the replica, which its topic may hold no more. The rows that the
    hub does not have so are saved at the path.
    """
    if not (file := Path(settings.database.place)).exists():
        raise ConfigError(
            f"there is no database {file}: correct its path, or create it with its tables first"
        )
    with open_store(replace(settings, rows_are_shared=True)) as store:
        return store.reinit(new_start(settings, store.compared_up_to(), known), is_known, path)
