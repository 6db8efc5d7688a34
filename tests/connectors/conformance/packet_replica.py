"""A replica that Kafka does not reach: its database, its agent, and the hub behind its folder."""

import math
import threading
from pathlib import Path

from connectors.agent.clock import ClockWatch
from connectors.agent.loop import Agent
from connectors.agent.packet_fed import PacketFedAgent
from connectors.packets.bay import Bay
from connectors.packets.export import Sender
from connectors.packets.format import packet_files
from connectors.packets.header import PacketKind
from connectors.packets.outbox import Outbox
from tests.connectors.conformance.database_under_test import RID, DatabaseUnderTest, SqliteFile
from tests.connectors.conformance.hub_batches import CLOCK_S
from tests.harness.packet_hub import PacketHub

INSERT = "INSERT INTO items (id, name) VALUES ({0}, 'n{0}')"


class PacketReplica:
    """A database with its agent, which is started and ended as a process is.

    `run`: the agent that was started last. `is_at_work`: it did not have to wait for a packet.
    """

    run: PacketFedAgent
    is_at_work: bool

    def __init__(self, database: DatabaseUnderTest, folder: Path, hub: PacketHub) -> None:
        self.database, self.folder, self.hub = database, folder, hub
        self.file = folder / "seven.outbox"
        self._outbox: Outbox | None = None

    # -- its agent --------------------------------------------------------------------------------

    def starts(self) -> None:
        """Start its agent anew; it is told to stop where it would wait for a packet."""
        self.ends()
        store = self.database.store()
        has_published = store.position.session is not None
        outbox = Outbox.open(self.file, "seven", has_published=has_published)
        self._outbox = outbox
        bay = Bay(self.folder, RID, lambda: store.position, lambda _: None, lambda: agent.told)
        watch = ClockWatch(RID)
        agent = Agent(
            RID, store, outbox, bay, lambda: CLOCK_S * 1000, watch=watch, heartbeat_s=math.inf
        )
        self.run = PacketFedAgent(agent, outbox, bay, Sender(self.folder, "seven", RID))
        stop = threading.Event()
        stop.set()
        self.is_at_work = self.run.start(stop)

    def works(self, times: int = 12) -> None:
        """Let the agent publish, receive and export for a while."""
        for _ in range(times):
            self.run.bay.scanned_s = None
            self.run.run_once(0)

    def starts_and_works(self) -> None:
        """Start its agent anew, and let it work for a while."""
        self.starts()
        self.works()

    def is_answered(self) -> None:
        """Let it work for a while; the hub takes what came, and answers a hello."""
        self.works()
        self.hub.answer()

    def ends(self) -> None:
        """End it, as a process that is killed does."""
        if self._outbox is not None:
            self._outbox.close()

    def loses_outbox(self) -> None:
        """End its agent, and delete its outbox."""
        self.ends()
        self.file.unlink()

    # -- its database -----------------------------------------------------------------------------

    def writes(self, number: int) -> None:
        """Let a client insert the row of this id."""
        self.database.write(INSERT.format(number))

    def publishes_half_of(self, one: int, other: int) -> None:
        """Let a client insert two rows together; the agent publishes the first, and is killed."""
        self.database.write_together(INSERT.format(one), INSERT.format(other))
        store, agent = self.run.agent.store, self.run.agent
        agent._publish_entries(store.unpublished(1, 10**6), agent.session)  # noqa: SLF001

    @property
    def ids(self) -> list[int]:
        """The ids of its rows."""
        return [row[0] for row in self.database.rows()]

    # -- its folder -------------------------------------------------------------------------------

    @property
    def written(self) -> list[Path]:
        """Its packets that the hub has not taken."""
        return packet_files(self.folder, PacketKind.CHANGES)

    @property
    def waiting(self) -> list[Path]:
        """The packets of the hub that it has not removed."""
        return packet_files(self.folder, PacketKind.UPDATES)


def put_back(database: SqliteFile, copy: bytes) -> None:
    """Restore the file as it was, as from a backup."""
    database.close()
    for name in ("-wal", "-shm"):
        database.path.with_name(database.path.name + name).unlink(missing_ok=True)
    database.path.write_bytes(copy)


def backup(database: SqliteFile) -> bytes:
    """A copy of the file as it is now."""
    with database._client() as client:  # noqa: SLF001
        client.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return database.path.read_bytes()
