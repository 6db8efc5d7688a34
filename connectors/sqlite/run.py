"""The agent of one SQLite replica: its database, opened and locked, under the agent's loop."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from connectors.agent.access import KafkaAccess
from connectors.agent.found import IsKnown, KnownOwn
from connectors.agent.outage import Outage
from connectors.agent.own_topic import compare
from connectors.agent.settings import AgentSettings
from connectors.agent.topics import ChangesTopic, TopicReader
from connectors.kafka.options import LiveOptions
from connectors.sqlite.file import exclusive
from connectors.sqlite.install.reinit import NewStart
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
        return store.reinit(_new_start(settings, store, known), is_known, path)


def _new_start(settings: AgentSettings, store: SqliteStore, known: KnownOwn) -> NewStart:
    """Read both topics to their ends."""
    outage = Outage(threading.Event(), KafkaAccess(settings, LiveOptions(settings.options)))
    offset, past = store.compared_up_to()
    with outage.logged:
        changes = ChangesTopic(outage).read(offset)
        end = compare(past, changes, offset, settings.rid, lambda _: None)
        updates_end = 0
        if settings.updates_topic:
            with closing(TopicReader(outage, settings.updates_topic, 0)) as updates:
                updates_end = updates.end()
    past.csn, past.opno = max(past.csn, known.csn), max(past.opno, known.opno)
    return NewStart(past, end, updates_end)
