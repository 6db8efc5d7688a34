"""What a server may have gone through since the agent read its log, each done to a real one.

It crashed, was restored, promoted or moved: nothing is told twice, and what the log lacks is told.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from connectors.postgres.store import PostgresStore
from streaming.core.model.errors import StateError
from tests.connectors.conformance.database_under_test import ITEMS
from tests.connectors.conformance.hub_batches import item
from tests.connectors.conformance.postgres_database import REPLICA, PostgresDatabase
from tests.connectors.postgres.scratch_server import (
    ScratchServer,
    run_as_postgres,
    scratch_folder,
)
from tests.connectors.postgres.topic_of_replica import ReplicaTopic

SMALL_LOG = "max_slot_wal_keep_size = '2MB'\nmin_wal_size = '2MB'\nmax_wal_size = '3MB'"

pytestmark = pytest.mark.more


@dataclass(slots=True)
class Site:
    """A replica that has published row 1, applied row 100, and published row 2."""

    folder: Path
    settings: str = ""
    options: tuple[str, ...] = ()
    server: ScratchServer = field(init=False)
    database: PostgresDatabase = field(init=False)
    topic: ReplicaTopic = field(default_factory=ReplicaTopic)

    def __post_init__(self) -> None:
        self.server = ScratchServer.create(self.folder, self.settings, *self.options)
        self.server.start()
        self.database = PostgresDatabase(self.address(self.server))
        self.database.attach()
        self.write(1)
        self.run(100)
        self.write(2)
        self.run()

    @staticmethod
    def address(server: ScratchServer) -> str:
        """The database in a server."""
        return f"{server.conninfo} dbname=postgres"

    def write(self, *ids: int) -> None:
        """Insert rows as a client."""
        self.database.write(*(f"INSERT INTO items VALUES ({id_}, 'own {id_}')" for id_ in ids))

    def run(self, *applied: int) -> tuple[bool, bool]:
        """Run the agent; whether its hello names lost changes, and a snapshot."""
        items = [item(id_, f"hub {id_}") for id_ in applied]
        hello = self.topic.run_agent(self.database.dsn, *items)
        return bool(hello.lost), hello.snapshot is not None

    def move(self, server: ScratchServer) -> None:
        """Go on in another server."""
        self.server, self.database.dsn = server, self.address(server)

    def is_told(self) -> bool:
        """Return whether the topic has every row as it is, but those that the hub has sent."""
        rows = {id_: name for id_, name, _ in self.database.rows() if not str(name).startswith("h")}
        return rows.items() <= self.topic.told().items()


@pytest.fixture
def folder() -> Iterator[Path]:
    """For the files of servers."""
    with scratch_folder() as found:
        yield found


def test_after_a_restart_or_a_crash_the_agent_goes_on(folder: Path) -> None:
    """The slot forgets what was confirmed since it was saved; the checkpoint does not."""
    site = Site(folder)
    for ended, id_ in ((site.server.stop, 3), (site.server.kill, 5), (site.server.kill, 7)):
        site.write(id_)
        assert site.run(100 + id_) == (False, False)
        site.write(id_ + 1)
        ended()
        site.server.start()

    assert site.run() == (False, False)

    assert site.topic.keys() == [*range(1, 9)]
    assert site.is_told()


def test_log_that_the_server_removed_is_a_gap(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A bound keeps the server's disk from filling up, and takes the slot."""
    site = Site(folder, SMALL_LOG, ("--wal-segsize=1",))
    site.write(3)
    with psycopg.connect(site.database.dsn, autocommit=True) as client:
        for _ in range(8):
            client.execute("SELECT pg_switch_wal(), pg_logical_emit_message(true, 'x', 'x')")
            client.execute("CHECKPOINT")
        state = client.execute("SELECT wal_status FROM pg_replication_slots").fetchone()
    assert state == ("lost",)

    begin = len(site.topic)
    assert site.run() == (False, True)

    assert "the server has removed log that replication slot" in caplog.text
    assert site.topic.keys(begin) == [1, 2, 3, 100]
    assert site.run() == (False, False)


def test_a_backup_put_in_place_has_no_slot_and_less_than_the_topic(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What it lacks comes back from the hub; what it has is told."""
    site = Site(folder)
    site.write(3)
    site.run()
    files = site.server.backup("backup", "-c", "fast")
    site.write(4)
    site.run()
    site.server.stop()
    site.server.put_back(files)
    site.server.start()
    site.write(5)

    begin = len(site.topic)
    assert site.run() == (True, True)

    assert "is not there any more" in caplog.text
    assert "the database lacks 1 change that it published" in caplog.text
    assert site.topic.keys(begin) == [1, 2, 3, 5, 100]
    assert site.is_told()
    assert site.run() == (False, False)


def test_a_promoted_standby_tells_what_the_slot_had_not_given(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It has no slot of the primary's; and what had not reached it is lost."""
    site = Site(folder)
    standby = site.server.standby()
    standby.start()
    with pytest.raises(StateError, match="the server is a standby"):
        PostgresStore.open(site.address(standby), REPLICA, [ITEMS])
    site.write(3)
    _wait_for(standby, site.server)
    standby.stop()
    site.write(4)
    site.run()
    site.server.kill()
    standby.start()
    standby.promote()
    site.move(standby)
    site.write(5)

    begin = len(site.topic)
    assert site.run() == (True, True)

    assert "was promoted, or restored, since: its timeline is 2 and was 1" in caplog.text
    assert site.topic.keys(begin) == [1, 2, 3, 5, 100]
    assert site.is_told()
    assert site.run(105) == (False, False)


def test_a_standby_that_lacks_nothing_is_promoted_without_a_loss(folder: Path) -> None:
    """Rows that nobody had read from the primary's log are told too."""
    site = Site(folder)
    standby = site.server.standby()
    standby.start()
    site.write(3)
    _wait_for(standby, site.server)
    site.server.kill()
    standby.promote()
    site.move(standby)

    begin = len(site.topic)
    assert site.run() == (False, True)

    assert site.topic.keys(begin) == [1, 2, 3, 100]


def test_a_cold_copy_put_back_has_its_slot_and_less_than_the_topic(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """There is no gap in its log: only the topic shows that it was put back."""
    site = Site(folder)
    site.write(3)
    site.server.stop()
    files = site.server.copy("cold")
    site.server.start()
    site.run()
    site.write(4)
    site.run(104)
    site.server.stop()
    site.server.put_back(files)
    site.server.start()
    site.write(5)

    begin = len(site.topic)
    assert site.run() == (True, False)

    assert "the database lacks 1 change that it published" in caplog.text
    assert "is not there any more" not in caplog.text
    assert site.topic.keys(begin) == [5]
    assert site.is_told()
    assert site.run() == (False, False)


def test_a_dump_in_another_server_is_a_gap(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It has the checkpoint of the one that was dumped, and a log of its own."""
    site = Site(folder)
    site.write(3)
    file = folder / "dump"
    run_as_postgres("pg_dump", "-Fc", "-d", site.database.dsn, "-f", str(file))
    other = folder / "other"
    other.mkdir()
    other.chmod(0o777)
    server = ScratchServer.create(other)
    server.start()
    run_as_postgres("pg_restore", "-d", site.address(server), str(file))
    site.move(server)
    site.write(5)

    begin = len(site.topic)
    assert site.run() == (False, True)

    assert "this is another server than the one whose log was read" in caplog.text
    assert site.topic.keys(begin) == [1, 2, 3, 5, 100]


def _wait_for(standby: ScratchServer, primary: ScratchServer) -> None:
    """Until the standby has all that the primary has."""
    with (
        psycopg.connect(f"{primary.conninfo} dbname=postgres") as above,
        psycopg.connect(f"{standby.conninfo} dbname=postgres", autocommit=True) as below,
    ):
        (end,) = above.execute("SELECT pg_current_wal_lsn()::text").fetchone() or ("",)
        query = "SELECT coalesce(pg_last_wal_replay_lsn() >= %s::pg_lsn, false)"
        while below.execute(query, (end,)).fetchone() != (True,):
            below.execute("SELECT pg_sleep(0.02)")
