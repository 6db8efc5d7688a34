"""A replica that Kafka does not reach: its agent works on packets in a folder alone."""

import math
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.agent.clock import ClockWatch
from connectors.agent.loop import Agent
from connectors.agent.packet_fed import PacketFedAgent
from connectors.packets.bay import Bay
from connectors.packets.export import Sender
from connectors.packets.format import packet_files
from connectors.packets.header import PacketKind
from connectors.packets.outbox import Outbox
from streaming.core.model.change import Change
from streaming.core.model.errors import StateError
from streaming.core.records.record import Abort, Applied, Commit, Hello
from tests.connectors.conformance.database_under_test import RID, DatabaseUnderTest, SqliteFile
from tests.connectors.conformance.hub_batches import CLOCK_S, item
from tests.harness.examples import examples
from tests.harness.packet_hub import PacketHub

INSERT = "INSERT INTO items (id, name) VALUES ({0}, 'n{0}')"


class Replica:
    """A database with its agent, which is started and ended as a process is."""

    def __init__(self, database: DatabaseUnderTest, folder: Path) -> None:
        self.database, self.folder = database, folder
        self.file = folder / "seven.outbox"
        self._outbox: Outbox | None = None

    def starts(self) -> PacketFedAgent:
        """Start its agent anew; it is told to stop where it would wait for a packet."""
        self.ends()
        store = self.database.store()
        has_published = store.position.session is not None
        outbox = Outbox.open(self.file, "seven", has_published=has_published)
        self._outbox = outbox
        bay = Bay(self.folder, RID, lambda: store.position, lambda _: None)
        watch = ClockWatch(RID)
        agent = Agent(
            RID, store, outbox, bay, lambda: CLOCK_S * 1000, watch=watch, heartbeat_s=math.inf
        )
        run = PacketFedAgent(agent, outbox, bay, Sender(self.folder, "seven", RID))
        stop = threading.Event()
        stop.set()
        self.is_at_work = run.start(stop)
        return run

    def ends(self) -> None:
        """End it, as a process that is killed does."""
        if self._outbox is not None:
            self._outbox.close()

    def works(self, run: PacketFedAgent, times: int = 12) -> None:
        """Let the agent publish, receive and export for a while."""
        for _ in range(times):
            run.bay.scanned_s = None
            run.run_once(0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of packets."""
    made = tmp_path / "packets"
    made.mkdir()
    return made


@pytest.fixture
def replica(database: DatabaseUnderTest, folder: Path) -> Replica:
    """A replica of which no agent was started yet."""
    return Replica(database, folder)


@pytest.fixture
def hub(folder: Path) -> PacketHub:
    """The hub behind the folder."""
    return PacketHub(folder, RID)


def outboxes(folder: Path) -> list[Path]:
    """The packets of the replica that are there."""
    return packet_files(folder, PacketKind.CHANGES)


def names(database: DatabaseUnderTest) -> list[int]:
    """The ids of the rows."""
    return [row[0] for row in database.rows()]


def test_rows_go_both_ways_by_files_alone(
    database: DatabaseUnderTest, replica: Replica, hub: PacketHub
) -> None:
    """Hello, changes and answers go up; batches come down; the files are gone behind it."""
    run = replica.starts()
    database.write(INSERT.format(1))
    replica.works(run)
    hub.answer()
    hub.write(item(2, "theirs"))
    hub.export()
    replica.works(run)
    hub.take()

    assert names(database) == [1, 2]
    assert isinstance(hub.taken[0][1], Hello)
    assert [one.key for one in hub.changes] == ['{"id":"1"}']
    assert hub.taken[-1][1].covers == 1  # type: ignore[union-attr]
    assert [one for one in hub.taken if isinstance(one[1], Applied)]
    assert outboxes(replica.folder) == []
    replica.works(run)
    assert packet_files(replica.folder, PacketKind.UPDATES) == []


def test_a_quiet_replica_writes_no_packets(replica: Replica, hub: PacketHub) -> None:
    """A heartbeat each ten seconds would be a file each ten seconds."""
    run = replica.starts()
    replica.works(run)
    hub.take()

    replica.works(run, 30)

    assert outboxes(replica.folder) == []


def test_the_session_lasts_over_restarts(
    database: DatabaseUnderTest, replica: Replica, hub: PacketHub
) -> None:
    """With a hello at every start, a packet that comes after a restart would be worthless."""
    run = replica.starts()
    replica.works(run)
    hub.answer()
    for number in range(1, 6):
        hub.write(item(number))
        hub.export()
        database.write(INSERT.format(number + 100))
        run = replica.starts()  # while the packet is under way
        replica.works(run)
        hub.answer()

    assert names(database) == [1, 2, 3, 4, 5, 101, 102, 103, 104, 105]
    assert len({session for session, _ in hub.taken}) == 1
    assert [one for _, one in hub.taken if isinstance(one, Hello)] == [hub.taken[0][1]]


def test_a_killed_agent_publishes_the_rest_of_its_transaction(
    database: DatabaseUnderTest, replica: Replica, hub: PacketHub
) -> None:
    """Its first change is in the outbox; nothing is sent twice, and nothing is aborted."""
    run = replica.starts()
    replica.works(run)
    database.write_together(INSERT.format(1), INSERT.format(2))
    store, agent = run.agent.store, run.agent
    agent._publish_entries(store.unpublished(1, 10**6), agent.session)  # noqa: SLF001

    replica.works(replica.starts())
    records = hub.take()

    assert [one.key for one in hub.changes] == ['{"id":"1"}', '{"id":"2"}']
    assert [type(one) for one in records if isinstance(one, Commit | Abort)] == [Commit]


def test_what_the_database_lacks_of_an_open_transaction_is_aborted(
    database: SqliteFile, replica: Replica, hub: PacketHub
) -> None:
    """It was put back to a moment before the transaction; the hub must not wait for its end."""
    run = replica.starts()
    replica.works(run)
    copy = backup(database)
    database.write_together(INSERT.format(1), INSERT.format(2))
    store, agent = run.agent.store, run.agent
    agent._publish_entries(store.unpublished(1, 10**6), agent.session)  # noqa: SLF001
    put_back(database, copy)

    replica.works(replica.starts())
    records = hub.take()

    assert [type(one) for one in records if isinstance(one, Commit | Abort)] == [Abort]
    assert len([one for one in records if isinstance(one, Hello)]) == 1


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


@pytest.mark.parametrize("is_scrubbed", [False, True])
def test_a_restored_database_says_hello_and_what_it_lost(
    database: SqliteFile, replica: Replica, hub: PacketHub, *, is_scrubbed: bool
) -> None:
    """It lacks a change that it published: the outbox tells, even if the change is scrubbed."""
    run = replica.starts()
    database.write(INSERT.format(1))
    replica.works(run)
    copy = backup(database)
    database.write(INSERT.format(2))
    replica.works(run)
    hub.answer()
    if is_scrubbed:
        hub.export()
        replica.works(run)
        assert run.outbox.scrubbed.place == len(hub.taken)
    put_back(database, copy)

    run = replica.starts()
    database.write(INSERT.format(3))
    replica.works(run)
    records = hub.take()

    (hello,) = [one for one in records if isinstance(one, Hello)]
    first, second, third = hub.changes
    assert (hello.lost, hello.own) == (True, first.csn)
    assert first.csn < second.csn < third.csn
    assert third.opno == 3


def test_a_database_that_was_put_back_behind_a_packet_says_hello(
    database: SqliteFile, replica: Replica, hub: PacketHub
) -> None:
    """The packet is gone from the folder; going on, it would wait for ever for what it had."""
    run = replica.starts()
    replica.works(run)
    hub.answer()
    copy = backup(database)
    hub.write(item(1))
    hub.export()
    replica.works(run)
    hub.take()
    put_back(database, copy)

    run = replica.starts()
    replica.works(run)
    hub.answer()
    hub.export()
    replica.works(run)

    assert names(database) == [1]
    assert [one.lost for _, one in hub.taken if isinstance(one, Hello)] == [False, False]


def test_a_lost_outbox_waits_for_a_packet_and_goes_on_behind_it(
    database: DatabaseUnderTest,
    replica: Replica,
    hub: PacketHub,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What was in it and in no packet is published again from the journal, with the same CSNs."""
    run = replica.starts()
    database.write(INSERT.format(1))
    replica.works(run)
    hub.answer()
    database.write(INSERT.format(2))
    run.agent.run_once()
    published = run.agent.store.published_own()
    replica.ends()
    replica.file.unlink()

    replica.starts()
    assert not replica.is_at_work
    assert "order one at the hub (`slackwater export` seven)" in caplog.text
    assert outboxes(replica.folder) == []

    known = hub.changes
    hub.export()
    run = replica.starts()
    replica.works(run)
    hub.answer()

    assert replica.is_at_work
    assert isinstance(hub.taken[0][1], Hello)
    assert (hub.taken[0][1].lost, hub.taken[0][1].own) == (False, known[0].csn)
    assert [one.csn for one in hub.changes][-1] == published
    replica.works(replica.starts())
    assert not [one for one in hub.take() if isinstance(one, Hello | Change)]


def test_a_lost_outbox_of_a_restored_database_reports_the_loss(
    database: SqliteFile, replica: Replica, hub: PacketHub
) -> None:
    """What it writes then is numbered behind all that the hub has of it."""
    run = replica.starts()
    database.write(INSERT.format(1))
    replica.works(run)
    copy = backup(database)
    database.write(INSERT.format(2))
    replica.works(run)
    hub.answer()
    lost = hub.changes[-1]
    replica.ends()
    replica.file.unlink()
    put_back(database, copy)
    hub.export()

    run = replica.starts()
    database.write(INSERT.format(3))
    replica.works(run)
    hub.answer()

    hello = hub.taken[0][1]
    assert isinstance(hello, Hello)
    assert hello.lost
    (change,) = hub.changes
    assert change.csn > lost.csn
    assert change.opno == 3


@pytest.mark.parametrize("is_seen_at_once", [True, False])
def test_an_outbox_that_was_put_back_gets_another_id(
    database: DatabaseUnderTest,
    replica: Replica,
    hub: PacketHub,
    caplog: pytest.LogCaptureFixture,
    *,
    is_seen_at_once: bool,
) -> None:
    """It would use places again that the hub has, and its records would be taken for known ones."""
    run = replica.starts()
    replica.works(run)
    replica.ends()
    copy = replica.file.read_bytes()
    run = replica.starts()
    if is_seen_at_once:
        database.write(INSERT.format(1))
    else:
        run.agent.heartbeat_at_s = -math.inf
        run.agent.heartbeat = run.agent.heartbeat.__class__(99)
    replica.works(run)
    hub.answer()
    id_, count = hub.outbox, len(hub.changes)
    hub.export()
    replica.ends()
    replica.file.write_bytes(copy)

    run = replica.starts()
    replica.works(run)
    database.write(INSERT.format(2))
    replica.works(run)
    hub.answer()

    assert "was put back" in caplog.text
    assert hub.outbox != id_
    assert isinstance(hub.taken[0][1], Hello)
    assert [one.key for one in hub.changes] == ['{"id":"2"}'], count


def test_a_database_that_was_emptied_says_hello_in_a_new_outbox(
    database: SqliteFile, replica: Replica, hub: PacketHub
) -> None:
    """Its place in a topic that it was compared with says nothing of the outbox."""
    store = database.store()
    database.close()
    with database._client() as client:  # noqa: SLF001
        client.execute("UPDATE _slackwater_position SET changes_offset = 1000, reinit = 1")
    assert store.position.session is None

    replica.works(replica.starts())
    replica.works(replica.starts())
    records = hub.take()

    assert replica.is_at_work
    assert [one.reinit for one in records if isinstance(one, Hello)] == [True]


def test_a_journal_that_has_not_all_of_it_any_more_says_so(
    database: DatabaseUnderTest,
    replica: Replica,
    hub: PacketHub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Going on without it, the replica would differ, and nobody would know."""
    run = replica.starts()
    replica.works(run)
    hub.answer()
    database.write(INSERT.format(1))
    replica.works(run)
    hub.export()
    replica.ends()
    replica.file.unlink()
    monkeypatch.setattr(type(run.agent.store), "publish_again", lambda *_: False)

    with pytest.raises(StateError, match="put the outbox back from a copy"):
        replica.starts()


def test_a_lost_packet_is_exported_again_on_order(
    database: DatabaseUnderTest, replica: Replica, hub: PacketHub
) -> None:
    """What the hub is not known to have comes again, at the same places."""
    run = replica.starts()
    replica.works(run)
    hub.answer()
    hub.export()
    replica.works(run)
    database.write(INSERT.format(1))
    replica.works(run)
    for path in outboxes(replica.folder):
        path.unlink()
    database.write(INSERT.format(2))
    replica.works(run)
    assert hub.take() == []

    run.forget_exports()
    replica.works(run)
    hub.take()

    assert [one.key for one in hub.changes] == ['{"id":"1"}', '{"id":"2"}']
    assert hub.refused == []


def test_a_hub_that_was_put_back_is_sent_one_hello(
    database: DatabaseUnderTest, replica: Replica, hub: PacketHub
) -> None:
    """Its generation is higher; what it had sent in the one before is dropped from then on."""
    run = replica.starts()
    replica.works(run)
    hub.answer()
    hub.write(item(1))
    old = hub.export()[0].read_bytes()
    name = packet_files(replica.folder, PacketKind.UPDATES)[0].name
    replica.works(run)
    hub.answer()
    hub.generation = 2
    for _ in range(2):
        hub.write(item(2))
        hub.export()
    replica.works(run)
    (replica.folder / name).write_bytes(old)
    hub.answer()
    hub.sent = 0
    hub.export()
    replica.works(run)

    assert len([one for _, one in hub.taken if isinstance(one, Hello)]) == 2
    assert names(database) == [1, 2]
    assert packet_files(replica.folder, PacketKind.UPDATES) == []


Step = Callable[[PacketHub], None]


@examples(15, share=20)
@given(data=st.data())
def test_packets_in_any_order_doubled_and_lost_bring_everything(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What was lost is sent again on order, from the replica's own word; the session stays."""
    folder = tmp_path_factory.mktemp("replica")
    with closing(SqliteFile(folder)) as database:
        packets = folder / "packets"
        packets.mkdir()
        replica, hub = Replica(database, packets), PacketHub(packets, RID)
        run = replica.starts()
        replica.works(run, 2)
        hub.answer()
        under_way = dict[str, bytes]()
        count = data.draw(st.integers(1, 8))
        for number in range(count):
            hub.write(item(number), item(number + 50))
            if data.draw(st.booleans()):
                for path in hub.export(part_bytes=data.draw(st.sampled_from([100, 10_000]))):
                    under_way[path.name] = path.read_bytes()
                    path.unlink()
            if data.draw(st.integers(0, 3)) == 0:
                run = replica.starts()
        for name in data.draw(st.permutations(sorted(under_way))):
            for _ in range(data.draw(st.integers(0, 2))):
                (packets / name).write_bytes(under_way[name])
                replica.works(run, 2)
        hub.take()
        hub.sent = max(
            (one.covers for _, one in hub.taken if isinstance(one, Applied | Hello)), default=0
        )
        hub.export()
        replica.works(run, count + 4)
        hub.take()

        assert names(database) == sorted([*range(count), *range(50, 50 + count)])
        assert len([one for _, one in hub.taken if isinstance(one, Hello)]) == 1
        assert packet_files(packets) == []
        replica.ends()
