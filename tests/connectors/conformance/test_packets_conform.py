"""A replica that Kafka does not reach: its agent works on packets in a folder alone."""

import math
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.packets.format import packet_files
from streaming.core.model.change import Change
from streaming.core.model.errors import StateError
from streaming.core.records.record import Abort, Applied, Commit, Hello, Record
from tests.connectors.conformance.database_under_test import RID, DatabaseUnderTest, SqliteFile
from tests.connectors.conformance.hub_batches import item
from tests.connectors.conformance.packet_replica import PacketReplica, backup, put_back
from tests.harness.examples import examples
from tests.harness.packet_hub import PacketHub

PUT_BACK = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Of databases that a test puts back as they were, or opens behind their agent's back."""


@pytest.fixture
def hub(tmp_path: Path) -> PacketHub:
    """The hub behind the folder."""
    folder = tmp_path / "packets"
    folder.mkdir()
    return PacketHub(folder, RID)


@pytest.fixture
def replica(database: DatabaseUnderTest, hub: PacketHub) -> PacketReplica:
    """A replica of which no agent was started yet."""
    return PacketReplica(database, hub.folder, hub)


@pytest.fixture
def at_work(replica: PacketReplica) -> PacketReplica:
    """The replica, with a hello in a packet that the hub has not taken."""
    replica.starts_and_works()
    return replica


@pytest.fixture
def in_session(at_work: PacketReplica, hub: PacketHub) -> PacketReplica:
    """The replica, with a hello that the hub has answered."""
    hub.answer()
    return at_work


def hellos(hub: PacketHub) -> list[Hello]:
    """Those that the hub has of the outbox in force."""
    return [one for _, one in hub.taken if isinstance(one, Hello)]


def ends_of_transactions(records: list[Record]) -> list[type]:
    """How the transactions among these records end."""
    return [type(one) for one in records if isinstance(one, Commit | Abort)]


# -- packets go and come ---------------------------------------------------------------------


def test_rows_go_both_ways_by_files_alone(replica: PacketReplica, hub: PacketHub) -> None:
    """Hello, changes and answers go up; batches come down; the files are gone behind it."""
    replica.starts()
    replica.writes(1)
    replica.is_answered()
    hub.write(item(2, "theirs"))
    hub.export()
    replica.works()
    hub.take()

    assert replica.ids == [1, 2]
    assert isinstance(hub.taken[0][1], Hello)
    assert [one.key for one in hub.changes] == ['{"id":"1"}']
    assert [one.covers for _, one in hub.taken if isinstance(one, Applied)][-1] == 1
    assert [one for one in hub.taken if isinstance(one[1], Applied)]
    assert replica.written == []
    replica.works()
    assert replica.waiting == []


def test_what_the_hub_has_not_answered_is_counted(
    in_session: PacketReplica, hub: PacketHub
) -> None:
    """Records that are in packets under way may be lost with them."""
    counts = in_session.run.agent.counts
    in_session.writes(1)
    in_session.works()
    before, size = counts.outbox_records, counts.outbox_bytes
    in_session.is_answered()
    hub.export()
    in_session.works()

    assert before == len(hub.taken)
    assert counts.outbox_records == in_session.run.outbox.end - len(hub.taken)
    assert size == in_session.file.stat().st_size


def test_a_quiet_replica_writes_no_packets(at_work: PacketReplica, hub: PacketHub) -> None:
    """A heartbeat each ten seconds would be a file each ten seconds."""
    hub.take()

    at_work.works(30)

    assert at_work.written == []


def test_the_session_lasts_over_restarts(in_session: PacketReplica, hub: PacketHub) -> None:
    """With a hello at every start, a packet that comes after a restart would be worthless."""
    for number in range(1, 6):
        hub.write(item(number))
        hub.export()
        in_session.writes(number + 100)
        in_session.starts()  # while the packet is under way
        in_session.is_answered()

    assert in_session.ids == [1, 2, 3, 4, 5, 101, 102, 103, 104, 105]
    assert len({session for session, _ in hub.taken}) == 1
    assert hellos(hub) == [hub.taken[0][1]]


def test_a_lost_packet_is_exported_again_on_order(
    in_session: PacketReplica, hub: PacketHub
) -> None:
    """What the hub is not known to have comes again, at the same places."""
    hub.export()
    in_session.works()
    in_session.writes(1)
    in_session.works()
    for path in in_session.written:
        path.unlink()
    in_session.writes(2)
    in_session.works()
    assert hub.take() == []

    in_session.run.forget_exports()
    in_session.works()
    hub.take()

    assert [one.key for one in hub.changes] == ['{"id":"1"}', '{"id":"2"}']
    assert hub.refused == []


def test_a_hub_that_was_put_back_is_sent_one_hello(
    in_session: PacketReplica, hub: PacketHub
) -> None:
    """Its generation is higher; what it had sent in the one before is dropped from then on."""
    hub.write(item(1))
    old = hub.export()[0].read_bytes()
    name = in_session.waiting[0].name
    in_session.is_answered()
    hub.generation = 2
    for _ in range(2):
        hub.write(item(2))
        hub.export()
    in_session.works()
    (in_session.folder / name).write_bytes(old)
    hub.answer()
    hub.sent = 0
    hub.export()
    in_session.works()

    assert len(hellos(hub)) == 2
    assert in_session.ids == [1, 2]
    assert in_session.waiting == []


# -- a transaction that is in the outbox in part ---------------------------------------------


def test_a_killed_agent_publishes_the_rest_of_its_transaction(
    at_work: PacketReplica, hub: PacketHub
) -> None:
    """Its first change is in the outbox; nothing is sent twice, and nothing is aborted."""
    at_work.publishes_half_of(1, 2)

    at_work.starts_and_works()
    records = hub.take()

    assert [one.key for one in hub.changes] == ['{"id":"1"}', '{"id":"2"}']
    assert ends_of_transactions(records) == [Commit]


@PUT_BACK
def test_what_the_database_lacks_of_an_open_transaction_is_aborted(
    database: SqliteFile, at_work: PacketReplica, hub: PacketHub
) -> None:
    """It was put back to a moment before the transaction; the hub must not wait for its end."""
    copy = backup(database)
    at_work.publishes_half_of(1, 2)
    put_back(database, copy)

    at_work.starts_and_works()
    records = hub.take()

    assert ends_of_transactions(records) == [Abort]
    assert len([one for one in records if isinstance(one, Hello)]) == 1


# -- a database that was put back or emptied -------------------------------------------------


@PUT_BACK
@pytest.mark.parametrize("is_scrubbed", [False, True])
def test_a_restored_database_says_hello_and_what_it_lost(
    database: SqliteFile, replica: PacketReplica, hub: PacketHub, *, is_scrubbed: bool
) -> None:
    """It lacks a change that it published: the outbox tells, even if the change is scrubbed."""
    replica.starts()
    replica.writes(1)
    replica.works()
    copy = backup(database)
    replica.writes(2)
    replica.is_answered()
    if is_scrubbed:
        hub.export()
        replica.works()
        assert replica.run.outbox.scrubbed.place == len(hub.taken)
    put_back(database, copy)

    replica.starts()
    replica.writes(3)
    replica.works()
    records = hub.take()

    (hello,) = [one for one in records if isinstance(one, Hello)]
    first, second, third = hub.changes
    assert (hello.lost, hello.own) == (True, first.csn)
    assert first.csn < second.csn < third.csn
    assert third.opno == 3


@PUT_BACK
def test_a_database_that_was_put_back_behind_a_packet_says_hello(
    database: SqliteFile, in_session: PacketReplica, hub: PacketHub
) -> None:
    """The packet is gone from the folder; going on, it would wait for ever for what it had."""
    copy = backup(database)
    hub.write(item(1))
    hub.export()
    in_session.works()
    hub.take()
    put_back(database, copy)

    in_session.starts()
    in_session.is_answered()
    hub.export()
    in_session.works()

    assert in_session.ids == [1]
    assert [one.lost for one in hellos(hub)] == [False, False]


@PUT_BACK
def test_a_database_that_was_emptied_says_hello_in_a_new_outbox(
    database: SqliteFile, replica: PacketReplica, hub: PacketHub
) -> None:
    """Its place in a topic that it was compared with says nothing of the outbox."""
    store = database.store()
    database.close()
    with database._client() as client:  # noqa: SLF001
        client.execute("UPDATE _slackwater_position SET changes_offset = 1000, reinit = 1")
    assert store.position.session is None

    replica.starts_and_works()
    replica.starts_and_works()
    records = hub.take()

    assert replica.is_at_work
    assert [one.reinit for one in records if isinstance(one, Hello)] == [True]


# -- an outbox that was lost or put back -----------------------------------------------------


def test_a_lost_outbox_waits_for_a_packet_and_goes_on_behind_it(
    replica: PacketReplica, hub: PacketHub, caplog: pytest.LogCaptureFixture
) -> None:
    """What was in it and in no packet is published again from the journal, with the same CSNs.

    A journal that keeps nothing that was published says so.
    """
    replica.starts()
    replica.writes(1)
    replica.is_answered()
    replica.writes(2)
    replica.run.agent.run_once()
    published = replica.run.agent.store.published_own()
    replica.loses_outbox()

    replica.starts()
    assert not replica.is_at_work
    assert "order one at the hub (`slackwater export` seven)" in caplog.text
    assert replica.written == []

    known = hub.changes
    hub.export()
    if replica.database.forgets:
        with pytest.raises(StateError, match="does not have all any more"):
            replica.starts()
        return
    replica.starts()
    replica.is_answered()

    assert replica.is_at_work
    assert isinstance(hub.taken[0][1], Hello)
    assert (hub.taken[0][1].lost, hub.taken[0][1].own) == (False, known[0].csn)
    assert [one.csn for one in hub.changes][-1] == published
    replica.starts_and_works()
    assert not [one for one in hub.take() if isinstance(one, Hello | Change)]


@PUT_BACK
def test_a_lost_outbox_of_a_restored_database_reports_the_loss(
    database: SqliteFile, replica: PacketReplica, hub: PacketHub
) -> None:
    """What it writes then is numbered behind all that the hub has of it."""
    replica.starts()
    replica.writes(1)
    replica.works()
    copy = backup(database)
    replica.writes(2)
    replica.is_answered()
    lost = hub.changes[-1]
    replica.loses_outbox()
    put_back(database, copy)
    hub.export()

    replica.starts()
    replica.writes(3)
    replica.is_answered()

    hello = hub.taken[0][1]
    assert isinstance(hello, Hello)
    assert hello.lost
    (change,) = hub.changes
    assert change.csn > lost.csn
    assert change.opno == 3


@pytest.mark.parametrize("is_seen_at_once", [True, False])
def test_an_outbox_that_was_put_back_gets_another_id(
    at_work: PacketReplica,
    hub: PacketHub,
    caplog: pytest.LogCaptureFixture,
    *,
    is_seen_at_once: bool,
) -> None:
    """It would use places again that the hub has, and its records would be taken for known ones."""
    at_work.ends()
    copy = at_work.file.read_bytes()
    at_work.starts()
    if is_seen_at_once:
        at_work.writes(1)
    else:
        agent = at_work.run.agent
        agent.heartbeat_at_s = -math.inf
        agent.heartbeat = agent.heartbeat.__class__(99)
    at_work.is_answered()
    id_, count = hub.outbox, len(hub.changes)
    hub.export()
    at_work.ends()
    at_work.file.write_bytes(copy)

    at_work.starts_and_works()
    at_work.writes(2)
    at_work.is_answered()

    assert "was put back" in caplog.text
    assert hub.outbox != id_
    assert isinstance(hub.taken[0][1], Hello)
    assert [one.key for one in hub.changes] == ['{"id":"2"}'], count


def test_a_journal_that_has_not_all_of_it_any_more_says_so(
    in_session: PacketReplica, hub: PacketHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Going on without it, the replica would differ, and nobody would know."""
    in_session.writes(1)
    in_session.works()
    hub.export()
    in_session.loses_outbox()
    monkeypatch.setattr(type(in_session.run.agent.store), "publish_again", lambda *_: False)

    with pytest.raises(StateError, match="put the outbox back from a copy"):
        in_session.starts()


# -- any order -------------------------------------------------------------------------------


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
        hub = PacketHub(packets, RID)
        replica = PacketReplica(database, packets, hub)
        replica.starts()
        replica.works(2)
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
                replica.starts()
        for name in data.draw(st.permutations(sorted(under_way))):
            for _ in range(data.draw(st.integers(0, 2))):
                (packets / name).write_bytes(under_way[name])
                replica.works(2)
        hub.take()
        hub.sent = max(
            (one.covers for _, one in hub.taken if isinstance(one, Applied | Hello)), default=0
        )
        hub.export()
        replica.works(count + 4)
        hub.take()

        assert replica.ids == sorted([*range(count), *range(50, 50 + count)])
        assert len(hellos(hub)) == 1
        assert packet_files(packets) == []
        replica.ends()
