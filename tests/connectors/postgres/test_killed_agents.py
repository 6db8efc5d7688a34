"""Agent and server are killed at every point, beside clients that write: the topic stays right."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path

import orjson
import psycopg
import pytest

from connectors import wire
from streaming.core.model.change import Change
from streaming.core.records.record import Commit, Hello
from tests.connectors.conformance.postgres_database import PostgresDatabase
from tests.connectors.postgres import killed_agent
from tests.connectors.postgres.killed_agent import ENDED_BY_SERVER, KEYS, KillPoint
from tests.connectors.postgres.scratch_server import ScratchServer, scratch_folder
from tests.connectors.postgres.topic_of_replica import check_numbers, rows_of
from tests.harness.rotation import ROTATION

POINTS = [one for one in KillPoint if one is not KillPoint.NOWHERE]


@dataclass(slots=True)
class Clients:
    """Write until they are to stop; `committed`: the names that are known to be."""

    dsn: str
    seed: int
    stopped: threading.Event = field(default_factory=threading.Event)
    committed: set[str] = field(default_factory=set)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """They write within the block."""
        threads = [threading.Thread(target=self._write, args=(n,)) for n in range(2)]
        for one in threads:
            one.start()
        try:
            yield
        finally:
            self.stopped.set()
            for one in threads:
                one.join()

    def _write(self, client: int) -> None:
        random_, numbers = random.Random(f"{self.seed} {client}"), count()
        while not self.stopped.is_set():
            try:
                with psycopg.connect(self.dsn, options="-c lock_timeout=1s") as session:
                    while not self.stopped.wait(0.004):
                        rows = random_.choice([1, 1, 2, 12])
                        names = [f"own {client} {n}" for n in islice(numbers, rows)]
                        with session.transaction():
                            for name in names:
                                self._upsert(session, random_, name)
                        self.committed.update(names)
            except psycopg.Error:
                time.sleep(0.05)  # the server was killed, or another one has the row

    @staticmethod
    def _upsert(
        session: "psycopg.Connection[tuple[object, ...]]", random_: random.Random, name: str
    ) -> None:
        key = random_.randrange(KEYS)
        if random_.random() < 0.2:
            session.execute("DELETE FROM items WHERE id = %s", (key,))
        session.execute(
            "INSERT INTO items VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name",
            (key, name),
        )


@dataclass(slots=True)
class Agents:
    """The program that runs an agent and lets it die."""

    process: "subprocess.Popen[str]"
    server: ScratchServer
    topic: Path

    def run(self, point: KillPoint, seed: int) -> int:
        """Run one until it ends; its exit code."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{point}\t{seed}\n")
        stdin.flush()
        if point is KillPoint.SERVER:
            self._wait_for_records()
            self.server.kill()
            self.server.start()
        return int(stdout.readline())

    def _wait_for_records(self) -> None:
        """Until the agent is at work and has published something."""
        before = len(killed_agent.lines(self.topic))
        for _ in range(1000):
            if len(killed_agent.lines(self.topic)) > before + 5:
                return
            time.sleep(0.03)
        raise AssertionError("the agent publishes nothing")


def check_kills(kills: int, seed: int) -> None:
    """What was committed is in the topic, once, in order and without a hole."""
    random_ = random.Random(seed)
    with scratch_folder() as folder:
        server, topic = ScratchServer.create(folder), folder / "topic"
        server.start()
        database = PostgresDatabase(f"{server.conninfo} dbname=postgres")
        database.attach()
        clients = Clients(database.dsn, seed)
        command = [sys.executable, "-m", killed_agent.__name__, database.dsn, str(topic)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            agents = Agents(process, server, topic)
            with clients.at_work():
                for n in range(kills):
                    point = POINTS[(seed + n) % len(POINTS)]
                    code = agents.run(point, random_.randrange(10**6))
                    is_server = point is KillPoint.SERVER
                    assert code == (ENDED_BY_SERVER if is_server else -signal.SIGKILL), point
            assert agents.run(KillPoint.NOWHERE, seed) == 0
            assert process.stdin is not None
            process.stdin.close()
        check_topic(killed_agent.lines(topic), database, clients.committed)


def check_topic(values: list[bytes], database: PostgresDatabase, committed: set[str]) -> None:
    """See check_kills."""
    check_numbers(values)
    told, open_ = dict[str, str](), set[str]()
    for _, record in map(wire.decode, values):
        match record:
            case Change(csn=csn, after=str(after), prim_csn=prim):
                name = str(orjson.loads(after)["name"])
                assert told.setdefault(name, csn) == csn, f"{name} has two CSNs"
                open_ |= {prim} if prim else set()
            case Commit(prim_csn=prim):
                open_.discard(prim)
            case Hello():
                assert open_ == set(), "a hello aborts what was committed"
            case _:
                pass
    assert committed <= told.keys()
    assert not [name for name in told if name.startswith("hub")]
    of_clients = {id_: name for id_, name, _ in database.rows() if str(name).startswith("own")}
    assert of_clients.items() <= rows_of(values).items()
    assert of_clients


@pytest.mark.more
def test_a_killed_agent_loses_and_repeats_nothing() -> None:
    """A few kills, another one of the points each time."""
    check_kills(len(POINTS), 0)


@pytest.mark.more
def test_many_kills_lose_and_repeat_nothing() -> None:
    """With another seed on each day."""
    check_kills(90, ROTATION or 1)
