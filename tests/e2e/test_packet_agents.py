"""A real agent of a replica that Kafka does not reach, and a real hub: files are all they share."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from connectors.packets.format import packet_files
from connectors.packets.header import PacketKind
from tests.harness.commits import last_commit
from tests.harness.hub_process import TIMEOUT_S
from tests.harness.site import RunningHub, Site, site
from tests.harness.sqlite_agents import agent, create, execute, rows

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

FED = "b"
_AGREEMENT = f'name = "{FED}"\nconsumer = "{FED}"\n'


@pytest.fixture
def at(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with a scripted replica, and a database beside a folder of its own."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        for name in ("packets", "far"):
            (tmp_path / name).mkdir()
        packets = f'{_AGREEMENT}packets = "packets"\npacket_every_s = 1\n'
        made.file.write_text(made.file.read_text().replace(_AGREEMENT, packets))
        made.replicas["a"].hello()
        create(made, FED)
        yield made


@contextmanager
def at_work(at: Site) -> "Iterator[subprocess.Popen[str]]":
    """The agent, which ends in order with the block."""
    one = agent(at, FED, None, "--packets", str(at.folder / "far"), "--every", "0.2")
    try:
        yield one
    finally:
        one.terminate()
        _, errors = one.communicate(timeout=TIMEOUT_S)
    assert one.returncode == 0, errors


def carry(at: Site, kind: PacketKind) -> int:
    """Carry packets of one way to the other side; how many there were."""
    folders = [at.folder / "packets", at.folder / "far"]
    source, target = folders if kind is PacketKind.UPDATES else reversed(folders)
    paths = packet_files(source, kind)
    for path in paths:
        shutil.move(path, target / f".{path.name}.part")
        (target / f".{path.name}.part").rename(target / path.name)
    return len(paths)


def carries_until_level(at: Site, hub: RunningHub) -> None:
    """Carry both ways until the hub knows that the replica has everything."""

    def is_level() -> bool:
        carry(at, PacketKind.UPDATES)
        carry(at, PacketKind.CHANGES)
        commit = last_commit(at.state)
        if commit is None or packet_files(at.folder / "packets", PacketKind.CHANGES):
            return False
        return commit.state.agreements[FED].acked_covers == commit.state.hub_epoch > 0

    hub.waits_for(is_level, f"{FED} has everything")


def test_rows_reach_both_sides_over_restarts_and_a_lost_packet(
    at: Site, spark: SparkSession
) -> None:
    """What follows the lost packet waits; sent again on order, everything is there."""
    a = at.replicas["a"]
    with at.running(spark) as hub:
        with at_work(at):
            a.write("from a", "1")
            execute(at, FED, "INSERT INTO t VALUES (?, ?)", "from b", "2")
            hub.takes(a)
            carries_until_level(at, hub)
            hub.waits_for(lambda: len(rows(at, FED)) == 2, "both rows are there")
        a.write("lost", "3")
        hub.takes(a)
        hub.waits_for(
            lambda: packet_files(at.folder / "packets", PacketKind.UPDATES) != [], "a packet"
        )
        for path in packet_files(at.folder / "packets", PacketKind.UPDATES):
            path.unlink()
        with at_work(at):
            execute(at, FED, "INSERT INTO t VALUES (?, ?)", "after", "4")
            at.slackwater("chepoch", FED, "--actual", "--force")
            carries_until_level(at, hub)
            hub.waits_for(lambda: len(rows(at, FED)) == 4, "the lost row is there")
        hub.brings(a)

    assert rows(at, FED) == {"from a": "1", "from b": "2", "lost": "3", "after": "4"}
    assert len(a.rows) == 4
