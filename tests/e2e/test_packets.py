"""A replica that Kafka does not reach takes part by packets, whatever becomes of them."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from connectors.kafka.embedded.broker import Broker
from connectors.kafka.placed_records import headers_of
from connectors.wire import decode_answer
from streaming.core.matrix.packets import Place
from streaming.core.model.errors import StateError
from streaming.core.records.record import PacketMarker
from streaming.hub.service import Service
from tests.harness.commits import last_commit
from tests.harness.fault_points import OF_PACKETS
from tests.harness.packet_ends import PacketEnds
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import RunningHub, Site, site
from tests.harness.topics import TopicEnds

FED = "c"
"""The replica without Kafka."""
_AGREEMENT = f'name = "{FED}"\nconsumer = "{FED}"\n'


@pytest.fixture
def at(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with three replicas, the third of which is sent packets."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc") as made:
        folder = tmp_path / "packets"
        folder.mkdir()
        text, fed = made.file.read_text(), made.replicas[FED]
        packets = f'{_AGREEMENT}packets = "packets"\npacket_every_s = 1\n'
        made.file.write_text(text.replace(_AGREEMENT, packets))
        fed.ends = cast("TopicEnds", PacketEnds(folder, FED, fed.rid))
        for replica in made.replicas.values():
            replica.hello()
        yield made


def fed_of(at: Site) -> tuple[ScriptedReplica, PacketEnds]:
    """The replica without Kafka, and its folder."""
    replica = at.replicas[FED]
    return replica, cast("PacketEnds", cast("object", replica.ends))


def exchange(at: Site, hub: RunningHub) -> None:
    """Carry packets both ways until the fed replica has everything and the hub knows it."""
    replica, ends = fed_of(at)
    topics, ends_of = [one.changes for one in at.replicas.values()], at.replicas["a"].ends

    def is_level() -> bool:
        replica.catch_up()
        if ends.exported < len(ends.records):
            ends.export()
        commit = last_commit(at.state)
        if commit is None or FED not in commit.state.agreements or ends.waiting():
            return False
        unread = (one for one in topics if commit.offsets[one] < ends_of.end(one))
        known = commit.state.agreements[FED]
        is_acked = replica.position.covers == commit.state.hub_epoch == known.acked_covers
        return is_acked and next(unread, None) is None

    hub.waits_for(is_level, f"{FED} has everything")


def brought(at: Site) -> int:
    """How many records are in the topic of the fed replica."""
    return at.replicas["a"].ends.end(at.replicas[FED].changes)


def taken(at: Site, hub: RunningHub) -> None:
    """Wait until no packet of the replica is in the folder."""
    hub.waits_for(lambda: not fed_of(at)[1].waiting(), "the packets are taken")


def test_what_it_writes_reaches_all_and_the_other_way_round(at: Site, spark: SparkSession) -> None:
    """Nothing of it passes through Kafka on its side."""
    a, b, (c, ends) = at.replicas["a"], at.replicas["b"], fed_of(at)
    with at.running(spark) as hub:
        a.write("from a", "1")
        c.write("from c", "2")
        ends.export()
        exchange(at, hub)
        hub.brings(a, b)

        a.write("both", "a")
        c.write("both", "c")
        hub.takes(a)
        exchange(at, hub)
        hub.brings(a, b)
        exchange(at, hub)

    assert a.rows == b.rows == c.rows
    assert len(a.rows) == 3
    assert at.slackwater("level")["level"] is True
    notes = [decode_answer(value) for _, value in at.replicas["a"].ends.read(c.updates)]
    assert notes
    assert all(isinstance(note, PacketMarker) for note in notes)
    assert ends.headers[-1].got is not None
    assert 0 < ends.headers[-1].got.place <= len(ends.records)
    assert at.slackwater("verify")["sound"]
    assert at.slackwater("replay")["equal"]


def test_packets_come_twice_and_in_any_order(at: Site, spark: SparkSession) -> None:
    """A stick, a mail and a synchronized folder bring what they bring."""
    c, ends = fed_of(at)
    for number in range(6):
        c.write(f"k{number}", str(number))
    first = ends.export(2)
    second = ends.export(4)
    third = ends.export()
    kept = {path.name: path.read_bytes() for path in (first, second, third)}
    first.unlink()

    with at.running(spark) as hub:
        hub.waits_for(lambda: brought(at) == 0 and len(ends.waiting()) == 2, "both wait")
        first.write_bytes(kept[first.name])
        taken(at, hub)
        second.write_bytes(kept[second.name])
        first.write_bytes(kept[first.name])
        taken(at, hub)
        exchange(at, hub)
    assert brought(at) == len(ends.records)


def test_a_lost_packet_is_seen_by_what_the_hub_has_got(at: Site, spark: SparkSession) -> None:
    """What follows waits, and the hub's next packet says from where it is exported again."""
    c, ends = fed_of(at)
    c.write("k", "1")
    with at.running(spark) as hub:
        exchange(at, hub)
        c.write("lost", "2")
        ends.export().unlink()
        c.write("behind it", "3")
        behind = ends.export()
        at.replicas["a"].write("x", "4")
        at.slackwater("export", FED)
        hub.waits_for(lambda: len(ends.headers) > 0 and c.catch_up() > 0, "a packet comes")
        assert behind.exists()

        got = ends.headers[-1].got
        assert got is not None
        ends.exported = got.place
        exchange(at, hub)
        hub.brings(at.replicas["a"])
    assert at.replicas["a"].rows == c.rows


def test_what_a_dead_hub_brought_half_is_not_brought_again(at: Site, spark: SparkSession) -> None:
    """The places in the topic are all that an importer knows, and enough."""
    c, ends = fed_of(at)
    for number in range(4):
        c.write(f"k{number}", str(number))
    ends.export()
    kafka = at.replicas["a"].ends
    for place, value in enumerate(ends.records[:2], 1):
        kafka.send(c.changes, FED, value, headers=headers_of(Place(ends.outbox, place)))

    with at.running(spark) as hub:
        exchange(at, hub)
    assert brought(at) == len(ends.records)


@pytest.mark.parametrize("point", OF_PACKETS)
def test_a_hub_that_dies_at_its_packets(at: Site, spark: SparkSession, point: FaultPoint) -> None:
    """The next one writes the same packet, under the same name."""
    c, ends = fed_of(at)
    c.write("k", "1")
    at.replicas["a"].write("x", "2")
    ends.export()
    at.dies(spark, point)

    with at.running(spark) as hub:
        exchange(at, hub)
        hub.brings(at.replicas["a"])
    assert at.replicas["a"].rows == c.rows


def test_a_full_copy_goes_out_at_once(at: Site, spark: SparkSession) -> None:
    """Pages that waited for acknowledgements of days would take months."""
    a, (c, ends) = at.replicas["a"], fed_of(at)
    limits = "resync_page_rows = 2\nresync_pages = 1\n"
    at.file.write_text(at.file.read_text().replace("[limits]\n", f"[limits]\n{limits}"))
    for number in range(9):
        a.write(f"k{number}", str(number))
    ends.export()
    with at.running(spark) as hub:
        exchange(at, hub)
        c.rows.clear()
        before = len(ends.headers)
        at.slackwater("resync", FED, "--full")

        def is_sent() -> bool:
            commit = last_commit(at.state)
            resync = commit.state.agreements[FED].resync if commit is not None else None
            return resync is not None and resync.last_page > 0

        hub.waits_for(is_sent, "all pages are sent")
        assert c.rows == {}
        exchange(at, hub)
    assert c.rows == a.rows
    assert len(ends.headers) - before >= 9 / 2


def test_an_older_state_is_known_by_the_notes_of_packets(at: Site, spark: SparkSession) -> None:
    """No topic holds what a packet brought: without its note a put-back hub would go on."""
    a, (c, ends) = at.replicas["a"], fed_of(at)
    a.write("x", "1")
    ends.export()
    with at.running(spark) as hub:
        exchange(at, hub)
    shutil.copytree(at.state, at.folder / "older")
    c.write("y", "2")
    ends.export()
    with at.running(spark) as hub:
        exchange(at, hub)
    for name in ("a", "b"):
        a.ends.cut(at.replicas[name].updates, a.ends.end(at.replicas[name].updates))

    shutil.rmtree(at.state)
    (at.folder / "older").rename(at.state)
    with pytest.raises(StateError, match=f"updates.{FED} holds hub epoch"):
        Service(at.config(), spark).run(threading.Event(), available_now=True)


def test_what_must_not_be_taken_is_named_and_left(at: Site, spark: SparkSession) -> None:
    """Records of a wrong outbox would be taken for others at the same places."""
    c, ends = fed_of(at)
    c.write("k", "1")
    ends.export()
    with at.running(spark) as hub:
        exchange(at, hub)
        count = brought(at)
        ends.packet(count - 1, [b'{"not":"what was there"}', b"{}"])
        other = PacketEnds(ends.folder, FED, c.rid, outbox="another", records=[b"{}"])
        other.packet(0, other.records)
        ends.packet(count, [b"{}"], generation="00000000000000000000")
        (ends.folder / "changes-x.packet").write_text("no packet")
        problems = at.slackwater("status")["problems"]
        hub.waits_for(
            lambda: (
                len([p for p in at.slackwater("status")["problems"] if "packet" in p["what"]]) == 4
            ),
            f"four packets are named: {problems}",
        )
        assert len(ends.waiting()) == 4
    assert brought(at) == count


def test_a_folder_that_is_away_is_named_until_it_is_back(at: Site, spark: SparkSession) -> None:
    """A disk that is not mounted, or is full, keeps nobody else waiting, and nothing is lost."""
    a, (c, ends) = at.replicas["a"], fed_of(at)
    away = ends.folder.with_name("away")

    def named() -> set[str]:
        problems = at.slackwater("status")["problems"]
        return {one["what"] for one in problems if str(ends.folder) in one["what"]}

    with at.running(spark) as hub:
        c.write("k", "1")
        ends.export()
        exchange(at, hub)
        ends.folder.rename(away)
        a.write("x", "2")
        hub.waits_for(lambda: len(named()) == 2, "both ways are named")
        hub.brings(a)

        away.rename(ends.folder)
        exchange(at, hub)
        hub.waits_for(lambda: not named(), "nothing is named any more")
    assert a.rows == c.rows


def test_a_retired_replica_brings_nothing_more(at: Site, spark: SparkSession) -> None:
    """Its rid is never given again, so what it wrote since is nobody's."""
    c, ends = fed_of(at)
    c.write("k", "1")
    ends.export()
    with at.running(spark) as hub:
        exchange(at, hub)
        at.slackwater("retire", FED, "--yes")
        hub.waits_for(lambda: at.replica_states()[FED].startswith("retired"), "it is retired")
        count = brought(at)
        c.write("late", "2")
        path = ends.export()
        hub.waits_for(
            lambda: any(path.name in p["what"] for p in at.slackwater("status")["problems"]),
            "the packet is named",
        )
    assert brought(at) == count
    assert path.exists()
