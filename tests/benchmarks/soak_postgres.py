"""Minutes of writes at two PostgreSQL servers and a SQLite file while everything is killed.

    python -m tests.benchmarks.soak_postgres --minutes 5 --seed 7

Clients write transactions of three rows, as pgbench does, 5 % of the rows of a few that all share.
Meanwhile agents, servers, broker and hub are killed at random and started again. At the end all
must be level, the rows equal by `slackwater compare` and by a plain dump, every write that a client
knows to be committed must be judged, and every loser be on record. It prints its seed and figures,
and exits with 1 if one of this does not hold.
"""

import argparse
import json
import random
import secrets
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from checkpoints.reading.reader import open_state
from connectors.kafka.embedded.broker import Broker
from streaming.core.conflict.judge import Verdict
from tests.connectors.postgres.scratch_server import ScratchServer, scratch_folder
from tests.harness.agents_of_kinds import create, execute_each, place, rows
from tests.harness.hub_process import HubProcess, wait_until
from tests.harness.site import Site, site

NAMES = "abc"
SERVERS = "bc"
"""The replicas that are PostgreSQL servers; a is a file of SQLite."""
WRITE = "INSERT INTO t VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v"
ROWS_OF_ONE = 3
OWN_ROWS, SHARED_ROWS = 5_000, 30
SHARED_OF_100 = 5
PAUSES_S = (4.0, 12.0)
"""The time between two kills."""
AWAY_S = 3.0
"""How long a server is away at most."""
LOOK_S = 0.5


@dataclass(slots=True)
class SoakClient:
    """The client of one replica; `committed`: the values whose commit it knows of."""

    at: Site
    name: str
    random: random.Random
    per_s: float
    committed: set[str] = field(default_factory=set)
    transactions: int = 0
    failures: int = 0

    def run(self, stop: threading.Event) -> None:
        """Write until it is stopped; a transaction that fails is given up."""
        number = 0
        while not stop.wait(self.random.expovariate(self.per_s)):
            values = dict(self._row(number + place) for place in range(ROWS_OF_ONE))
            number += ROWS_OF_ONE
            try:
                execute_each(self.at, self.name, WRITE, sorted(values.items()))
            except (psycopg.Error, sqlite3.Error):
                self.failures += 1
                continue
            self.transactions += 1
            self.committed.update(values.values())

    def _row(self, number: int) -> tuple[str, str]:
        if self.random.randrange(100) < SHARED_OF_100:
            key = f"shared {self.random.randrange(SHARED_ROWS):05}"
        else:
            key = f"{self.name} {self.random.randrange(OWN_ROWS):05}"
        return key, f"{self.name}:{number}"


@dataclass(slots=True)
class SoakSite:
    """Everything that runs, and what was killed of it; `ended`: what ended by itself."""

    at: Site
    broker: Broker
    servers: dict[str, ScratchServer]
    random: random.Random
    hub: HubProcess
    agents: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    killed: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)

    def kill_one(self) -> None:
        """Kill something, and start it again."""
        kinds: dict[str, Callable[[], None]] = {
            "agent": self._kill_agent,
            "server": self._kill_server,
            "hub": self._kill_hub,
            "broker": self._kill_broker,
        }
        kind = self.random.choices(list(kinds), (4, 3, 1, 1))[0]
        self.killed[kind] += 1
        kinds[kind]()

    def supervise(self) -> None:
        """Start again what has ended, as systemd does."""
        for name in NAMES:
            one = self.agents.get(name)
            if one is None or one.poll() is not None:
                self.ended["agent"] += one is not None
                self.agents[name] = self._agent(name)
        if not self.hub.runs():
            self.ended["hub"] += 1
            self.hub = self.at.hub()

    def end(self) -> None:
        """End agents and hub in order."""
        for one in self.agents.values():
            one.terminate()
        for one in self.agents.values():
            one.wait(60)
        self.hub.terminate()
        self.hub.ends()

    def kill_all(self) -> None:
        """Leave nothing behind."""
        for one in self.agents.values():
            with suppress(ProcessLookupError):
                one.kill()
            one.wait()
        self.hub.kill()

    def _agent(self, name: str) -> "subprocess.Popen[bytes]":
        command = (sys.executable, "-m", "streaming.cli.main", "agent", "--config")
        options = (str(self.at.file), "--replica", name, "--database", place(self.at, name))
        with (self.at.folder / f"agent-{name}.log").open("ab") as log:
            return subprocess.Popen([*command, *options], stderr=log)

    def _kill_agent(self) -> None:
        name = self.random.choice(NAMES)
        self.agents[name].kill()
        self.agents[name].wait()
        self.agents[name] = self._agent(name)

    def _kill_server(self) -> None:
        server = self.servers[self.random.choice(SERVERS)]
        server.kill()
        time.sleep(self.random.uniform(0, AWAY_S))
        server.start()

    def _kill_hub(self) -> None:
        self.hub.kill()
        self.hub = self.at.hub()

    def _kill_broker(self) -> None:
        self.broker.kill()
        self.broker = Broker.start(self.at.folder / "broker")


def soak(folder: Path, servers_folder: Path, seconds: float, seed: int, per_s: float) -> int:
    """Run it; how many problems were found."""
    chance = random.Random(seed)
    with ExitStack() as ends:
        broker = Broker.start(folder / "broker")
        ends.callback(lambda: _end_broker(folder / "broker"))
        at = ends.enter_context(site(folder, broker.bootstrap_servers, "soak.", NAMES))
        servers = {name: _server(servers_folder / name) for name in SERVERS}
        for name in NAMES:
            create(at, name, server=servers[name].conninfo if name in servers else None)
        soaked = SoakSite(at, broker, servers, chance, at.hub())
        ends.callback(soaked.kill_all)
        soaked.supervise()
        wait_until(lambda: _is_level(at), lambda: "the first hellos")
        clients = [SoakClient(at, n, random.Random(f"{seed}{n}"), per_s) for n in NAMES]
        _write_and_kill(soaked, clients, seconds)
        began_s = time.monotonic()
        wait_until(lambda: _comes_level(soaked), lambda: json.dumps(at.slackwater("level")))
        level_s = time.monotonic() - began_s
        problems = [*_differences(at)]
        soaked.end()
        problems += _unrecorded(at, clients)
        _report(soaked, clients, seconds, level_s)
    for problem in problems:
        _say(f"PROBLEM: {problem}")
    return len(problems)


def _server(folder: Path) -> ScratchServer:
    folder.mkdir()
    folder.chmod(0o777)
    server = ScratchServer.create(folder)
    server.start()
    return server


def _end_broker(folder: Path) -> None:
    running = Broker.running(folder)
    if running is not None:
        running.kill()


def _write_and_kill(soaked: SoakSite, clients: list[SoakClient], seconds: float) -> None:
    stop = threading.Event()
    threads = [threading.Thread(target=one.run, args=(stop,), daemon=True) for one in clients]
    for thread in threads:
        thread.start()
    until_s = time.monotonic() + seconds
    next_s = time.monotonic() + soaked.random.uniform(*PAUSES_S)
    try:
        while time.monotonic() < until_s:
            time.sleep(LOOK_S)
            soaked.supervise()
            if time.monotonic() >= next_s:
                soaked.kill_one()
                next_s = time.monotonic() + soaked.random.uniform(*PAUSES_S)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _is_level(at: Site) -> bool:
    with suppress(AssertionError):  # there is no state yet
        return bool(at.slackwater("level")["level"])
    return False


def _comes_level(soaked: SoakSite) -> bool:
    soaked.supervise()
    return _is_level(soaked.at)


def _differences(at: Site) -> Iterator[str]:
    """By `slackwater compare`, and by a dump that knows nothing of it."""
    where = [f"--database={name}={place(at, name)}" for name in NAMES]
    for sides in (("a", "b"), ("a", "c"), ("hub", "a")):
        if not at.slackwater("compare", *sides, *where)["is_equal"]:
            yield f"compare says that {' and '.join(sides)} differ"
    first = rows(at, NAMES[0])
    for name in NAMES[1:]:
        other = rows(at, name)
        count = sum(first.get(key) != other.get(key) for key in first.keys() | other.keys())
        if count:
            yield f"{count} rows of {NAMES[0]} and {name} differ"


def _unrecorded(at: Site, clients: list[SoakClient]) -> list[str]:
    """Committed writes that are not judged, and losers that are not once in `conflicts`."""
    judged = _judged(at)
    values = Counter(json.loads(row["after"])["v"] for row in judged if row["after"])
    lost = {row["csn"] for row in judged if row["verdict"] == Verdict.REJECTED}
    recorded = Counter(row["loser_csn"] for row in open_state(at.state).conflicts({}).to_pylist())
    problems = [
        f"{value} of {one.name} is {values[value]} times in the changelog, not once"
        for one in clients
        for value in sorted(one.committed)
        if values[value] != 1
    ]
    problems += [
        f"loser {csn} is {recorded[csn]} times on record"
        for csn in sorted(lost)
        if recorded[csn] != 1
    ]
    return problems


def _judged(at: Site) -> list[dict[str, str]]:
    columns = ["csn", "after", "verdict"]
    changes = open_state(at.state).changelog({"kind": "change"}, columns=columns)
    found: list[dict[str, str]] = changes.to_pylist()
    return found


def _report(soaked: SoakSite, clients: list[SoakClient], seconds: float, level_s: float) -> None:
    judged = _judged(soaked.at)
    lost = sum(row["verdict"] == Verdict.REJECTED for row in judged)
    for one in clients:
        kind = "PostgreSQL" if one.name in SERVERS else "SQLite"
        _say(
            f"{one.name} ({kind}): {one.transactions} transactions, {one.failures} failed,"
            f" {len(one.committed)} values committed"
        )
    _say(f"killed in {seconds:.0f} s: {dict(soaked.killed)}; ended by itself: {dict(soaked.ended)}")
    _say(f"judged {len(judged)} changes, {lost} lost; level after {level_s:.1f} s")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Exit code 0 if everything held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--per-second", type=float, default=15, help="transactions of each client")
    options = parser.parse_args()
    _say(f"seed {options.seed}: --seed {options.seed} repeats the moments and the rows")
    with tempfile.TemporaryDirectory() as folder, scratch_folder() as servers:
        return min(
            1,
            soak(Path(folder), servers, options.minutes * 60, options.seed, options.per_second),
        )


if __name__ == "__main__":
    sys.exit(main())
