"""A real agent without Kafka and a real hub: packets between them are lost, doubled and late."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from connectors.packets.format import copy_packet, packet_files, read_header
from connectors.packets.header import PacketKind
from tests.harness import sqlite_agents
from tests.harness.commits import last_commit
from tests.harness.hub_process import TIMEOUT_S
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import RunningHub, Site, site

FED = "c"
"""The replica without Kafka."""
_AGREEMENT = f'name = "{FED}"\nconsumer = "{FED}"\n'


@dataclass
class Carrier:
    """Carries packets between the folder of the hub and that of the replica.

    `loses`: the next so many of each way are lost. `doubles`: a copy comes once more.
    """

    hub: Path
    replica: Path
    loses: int = 0
    doubles: bool = False
    carried: int = 0

    def carry(self) -> int:
        """Take all that is there both ways; how many packets came through since the beginning."""
        self._move(self.replica, self.hub, PacketKind.CHANGES)
        self._move(self.hub, self.replica, PacketKind.UPDATES)
        return self.carried

    def _move(self, source: Path, target: Path, kind: PacketKind) -> None:
        for path in packet_files(source, kind):
            if self.loses:
                self.loses -= 1
            else:
                copy_packet(path, target, read_header(path))
                if self.doubles:
                    shutil.copy2(path, target / f"{kind}-again-{path.name}")
                self.carried += 1
            path.unlink()


@pytest.fixture
def at(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with a scripted replica by Kafka, and a SQLite file that is sent packets."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, f"a{FED}") as made:
        for name in ("at hub", "at replica"):
            (tmp_path / name).mkdir()
        packets = f'{_AGREEMENT}packets = "at hub"\npacket_every_s = 1\n'
        made.file.write_text(made.file.read_text().replace(_AGREEMENT, packets))
        sqlite_agents.create(made, FED)
        made.replicas["a"].hello()
        yield made


@pytest.fixture
def carrier(at: Site) -> Carrier:
    """Who carries the files."""
    return Carrier(at.folder / "at hub", at.folder / "at replica")


def arguments(at: Site, *more: str) -> tuple[str, ...]:
    """What the agent is started with."""
    return ("--packets", str(at.folder / "at replica"), "--every", "0.2", *more)


@contextmanager
def agent(at: Site, *more: str) -> Iterator[None]:
    """The agent of the replica, which ends in order with the block."""
    one = sqlite_agents.agent(at, FED, None, *arguments(at, *more))
    try:
        yield
    finally:
        one.terminate()
        _, errors = one.communicate(timeout=TIMEOUT_S)
    assert one.returncode == 0, errors


@contextmanager
def killed_agent(at: Site) -> Iterator[None]:
    """The agent of the replica, which is killed with the block."""
    with sqlite_agents.at_work(at, FED, *arguments(at)):
        yield


def values(one: ScriptedReplica) -> dict[str, str]:
    """Key -> value, as a scripted replica holds them."""
    found = (json.loads(image) for image in one.rows.values())
    return {row["k"]: row["v"] for row in found}


def is_level(at: Site, carrier: Carrier) -> bool:
    """Carry what is there; whether both hold the same rows, and the hub says so.

    What is written and not carried yet the hub cannot know of.
    """
    carrier.carry()
    a = at.replicas["a"]
    a.catch_up()
    same = values(a) == sqlite_agents.rows(at, FED)
    return same and at.slackwater("level")["level"] is True


def brings(at: Site, hub: RunningHub, carrier: Carrier) -> None:
    """Carry packets until everybody has everything, and `level` says so."""
    hub.waits_for(lambda: is_level(at, carrier), "everybody is level")


def carries(carrier: Carrier, before: int) -> bool:
    """Carry what is there; whether anything came through."""
    return carrier.carry() > before


def test_rows_go_both_ways_by_files(at: Site, spark: SparkSession, carrier: Carrier) -> None:
    """The replica's machine reaches no broker; whoever has the files brings it up to date."""
    a = at.replicas["a"]
    with at.running(spark) as hub, agent(at):
        hub.waits_for(lambda: sqlite_agents.captures(at, FED), "writes are captured")
        sqlite_agents.execute(at, FED, "INSERT INTO t VALUES ('mine', '1')")
        a.write("theirs", "2")
        brings(at, hub, carrier)
        sqlite_agents.execute(at, FED, "UPDATE t SET v = '3' WHERE k = 'theirs'")
        brings(at, hub, carrier)
    assert sqlite_agents.rows(at, FED) == values(a) == {"mine": "1", "theirs": "3"}


@pytest.mark.more
def test_lost_and_doubled_packets_are_made_good(
    at: Site, spark: SparkSession, carrier: Carrier
) -> None:
    """The row is lowered at the hub, and the agent starts again; nothing else is needed."""
    a = at.replicas["a"]
    with at.running(spark) as hub:
        with agent(at):
            hub.waits_for(lambda: sqlite_agents.captures(at, FED), "writes are captured")
            sqlite_agents.execute(at, FED, "INSERT INTO t VALUES ('mine', '1')")
            brings(at, hub, carrier)

            carrier.loses = 2
            sqlite_agents.execute(at, FED, "INSERT INTO t VALUES ('lost', '2')")
            a.write("lost too", "3")
            hub.waits_for(lambda: carrier.carry() >= 0 and not carrier.loses, "both are lost")
            a.write("behind it", "4")
            sqlite_agents.execute(at, FED, "INSERT INTO t VALUES ('behind', '5')")
            hub.takes(a)
        carrier.doubles = True
        at.slackwater("chepoch", FED, "--actual", "--force")
        with agent(at, "--again"):
            brings(at, hub, carrier)
    assert sqlite_agents.rows(at, FED).keys() == {"mine", "lost", "lost too", "behind it", "behind"}
    assert len(values(a)) == 5


@pytest.mark.more
def test_restarts_between_packets_keep_the_session(
    at: Site, spark: SparkSession, carrier: Carrier
) -> None:
    """A hello at every start, with packets slower than restarts, never gets anywhere."""
    a = at.replicas["a"]
    with at.running(spark) as hub:
        with killed_agent(at):
            hub.waits_for(lambda: sqlite_agents.captures(at, FED), "writes are captured")
            brings(at, hub, carrier)
        for number in range(3):
            a.write(f"k{number}", "1")
            hub.takes(a)
            carried = carrier.carried
            with killed_agent(at):
                sqlite_agents.execute(at, FED, "INSERT INTO t VALUES (?, '2')", f"own{number}")
                hub.waits_for(partial(carries, carrier, carried), "a packet goes")
        with killed_agent(at):
            brings(at, hub, carrier)
    commit = last_commit(at.state)
    assert commit is not None
    assert len(commit.state.replicas[2].known_sessions) == 1
    assert len(sqlite_agents.rows(at, FED)) == len(values(a)) == 6
