"""An older content is put over the database at work: the agent writes nothing to it and says so.

The file is the same, so only the content tells. What the agent would write there, a position above
all, would hide from its next start that the database is an older one.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from connectors.agent.contract import JournalEntry
from connectors.sqlite.store import SqliteStore
from streaming.core.delivery.consumer import ApplyBatch, receive
from streaming.core.model.errors import StateError
from streaming.core.model.ruv import Ruv
from streaming.core.records.record import Item, ItemType, Update
from tests.connectors.sqlite.sqlite_replica import Replica

CLOCK_MS = 1_800_000_000_000
CSN = f"{CLOCK_MS // 1000:08x}000500020000"
RUV = Ruv("5f00").with_csn(CSN)


@dataclass
class Backup:
    """A copy of a replica's database, which can be put over it."""

    replica: Replica
    copy: sqlite3.Connection

    def put_back(self) -> list[tuple[object, ...]]:
        """Write it over the database, through a client; returns all that the agent keeps in it."""
        self.copy.backup(self.replica.client)
        return self.content()

    def content(self) -> list[tuple[object, ...]]:
        """What the agent keeps in the database."""
        position = self.replica.client.execute("SELECT * FROM _slackwater_position").fetchall()
        return [*position, *self.replica.client.execute("SELECT * FROM _slackwater_journal")]


@pytest.fixture
def store(replica: Replica) -> Iterator[SqliteStore]:
    """A replica at work, whose topic has one change."""
    with closing(replica.store()) as opened:
        opened.start_session("s1", None, lost=False)
        replica.client.execute("INSERT INTO items (id) VALUES (1)")
        opened.mark_published(read(opened))
        yield opened


@pytest.fixture
def backup(replica: Replica, store: SqliteStore) -> Iterator[Backup]:
    """Taken after that change."""
    del store
    with closing(sqlite3.connect(":memory:")) as copy:
        replica.client.backup(copy)
        yield Backup(replica, copy)


def read(store: SqliteStore) -> JournalEntry:
    """The last entry that is to be published."""
    return store.unpublished(10**6, 10**9)[-1]


def apply(store: SqliteStore, hub_epoch: int) -> None:
    """A batch with a row comes."""
    row = Item(ItemType.CHANGE, "items", f'{{"id":"{hub_epoch}"}}', "update", "{}", CSN, 2)
    last = store.position.last
    update = Update("a", 1, "s1", hub_epoch, last, hub_epoch, RUV, 0, 1, (row,))
    outcome = receive(store.position, update)
    assert isinstance(outcome, ApplyBatch)
    store.apply(outcome, hub_epoch, CLOCK_MS)


def test_no_batch_is_applied_to_it(store: SqliteStore, backup: Backup) -> None:
    """The position behind the batch would say that it has the batches before it, too."""
    apply(store, 4)
    older = backup.put_back()

    with pytest.raises(StateError, match="was replaced while its agent ran"):
        apply(store, 5)

    assert backup.content() == older
    assert backup.replica.store().position.covers == 0


def test_nothing_of_it_is_published(store: SqliteStore, backup: Backup) -> None:
    """It gives CSNs again that the topic has with other content."""
    backup.replica.client.execute("INSERT INTO items (id) VALUES (2)")
    store.mark_published(read(store))
    backup.put_back()
    backup.replica.client.execute("INSERT INTO items (id) VALUES (3)")

    with pytest.raises(StateError, match="was replaced while its agent ran"):
        store.unpublished(10, 10**6)


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_nothing_in_it_counts_as_published(store: SqliteStore, backup: Backup, writes: int) -> None:
    """It comes between a publication and its mark: other changes have the same place there."""
    backup.replica.client.execute("INSERT INTO items (id) VALUES (2)")
    entry = read(store)
    backup.put_back()
    for number in range(writes):
        backup.replica.client.execute("INSERT INTO items (id) VALUES (?)", (10 + number,))
    older = backup.content()

    with pytest.raises(StateError, match="was replaced while its agent ran"):
        store.mark_published(entry)

    assert backup.content() == older


def test_no_session_starts_in_it(store: SqliteStore, backup: Backup) -> None:
    """Its session would be the one that the agent knows."""
    apply(store, 4)
    older = backup.put_back()

    with pytest.raises(StateError, match="was replaced while its agent ran"):
        store.start_session("s2", None, lost=False)

    assert backup.content() == older


def test_a_database_of_somebody_else_is_none_of_a_replica(
    store: SqliteStore, backup: Backup
) -> None:
    """Without a table of the agent's, it is no error of SQLite's."""
    with closing(sqlite3.connect(":memory:")) as stranger:
        stranger.execute("CREATE TABLE notes (text)")
        stranger.backup(backup.replica.client)

    with pytest.raises(StateError, match="was replaced while its agent ran"):
        apply(store, 4)


def test_a_write_ahead_log_that_somebody_cleans_up_is_missed(
    store: SqliteStore, replica: Replica
) -> None:
    """Clients that come later write to another one, which the agent never reads."""
    wal = replica.path.with_name(f"{replica.path.name}-wal")
    store.check_schema()

    wal.rename(wal.with_suffix(".old"))

    with pytest.raises(StateError, match=r"-wal was deleted or replaced while its agent ran"):
        store.check_schema()
    wal.touch()
    with pytest.raises(StateError, match=r"-wal was deleted or replaced while its agent ran"):
        store.check_schema()
