"""An hour of inserts, updates and deletes at a hub that keeps its history for minutes.

    python -m tests.benchmarks.soak_retention --minutes 60 --folder /tmp/soak

Three clients write to files of SQLite: rows of a range that stays, rows that all share, and rows
under ever new keys, which are deleted again. Nothing is killed. Every 20 s it measures the tables
(bytes, files and versions), the memory of hub and JVM, and how late a write is at another replica.
`soak.csv` and `soak.svg` in the folder have the figures. At the end the rows must be equal
everywhere and the state sound. It exits with 1 if that is not so, or if a figure grows in the last
third; see soak_figures.py.
"""

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from tests.benchmarks.memory import resident
from tests.benchmarks.soak_figures import SoakSample, growth, picture, write_line
from tests.harness.hub_process import QUICK_JAVA, HubProcess, wait_until
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import captures, create, database, rows

NAMES = "abc"
EVERY_S = 20.0
TICK_S = 0.2
OWN_ROWS, SHARED_ROWS, NEW_ROWS = 5_000, 30, 2_000
"""Rows of a client that stay, rows that all write, and how many under new keys it has at a time."""
SHARED_OF_100, NEW_OF_100 = 2, 30
"""Of its changes; as many deletes as inserts under new keys, and the rest goes to its own rows."""
UPSERT = "INSERT INTO t VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v"
DELETE = "DELETE FROM t WHERE k = ?"

SETTINGS: Mapping[str, object] = {
    "HUB__TRIGGER_MS": 500,
    "HUB__COVERS_INTERVAL_MS": 1_000,
    "HUB__REPLAY_WINDOW_H": 1,
    "LIMITS__MATERIALIZE_EVERY_S": 60,
    "RETENTION__KEEP_H": 3 / 60,
    "RETENTION__MAX_AWAY_H": 10 / 60,
    "RETENTION__CONFLICTS_H": 3 / 60,
}

WHOLE_HEAP = "-Xms1g -XX:+AlwaysPreTouch"
"""The JVM takes its whole heap at once: it gives none back, and fills it within hours anyway."""

EXPECTED: Mapping[str, str] = {
    "rows.disk.bytes": "versions of `rows` are kept for hub.replay_window_h and a day",
    "rows.disk.files": "the same",
    "rows.log.files": "the same",
    "disk.bytes": "it contains those of `rows`",
    "disk.files": "the same",
}
"""What grows for longer than any soak, with the reason: it is measured, and not judged."""

_KINDS = ("live.bytes", "live.files", "disk.bytes", "disk.files", "log.files", "version")
_OF_ALL = ("live.bytes", "disk.bytes", "disk.files")
_MEMORY = ("python.bytes", "java.bytes")
FIGURES = (
    *_OF_ALL,
    *_MEMORY,
    "lag_ms",
    "written",
    *(f"{name}.{kind}" for name in TableName for kind in _KINDS),
)
"""In the order of the columns; each kind of each table, and each of all tables together."""
JUDGED = [name for name in FIGURES if name.endswith((".bytes", ".files"))]
PANELS: Mapping[str, Sequence[str]] = {
    "bytes of all tables: of their newest versions, and on disk": ("live.bytes", "disk.bytes"),
    "bytes of the newest version, by table": [f"{name}.live.bytes" for name in TableName],
    "files on disk, by table": [f"{name}.disk.files" for name in TableName],
    "entries in the log folders, by table": [f"{name}.log.files" for name in TableName],
    "memory": _MEMORY,
    "how late a write is at another replica": ("lag_ms",),
}


@dataclass(slots=True)
class SteadyClient:
    """The client of one replica, which writes so many changes a second."""

    file: Path
    name: str
    random: random.Random
    per_s: float
    written: int = 0
    new: int = 0
    failures: list[str] = field(default_factory=list)

    def run(self, stop: threading.Event) -> None:
        """Write until it is stopped; what it could not write at once it makes up for."""
        began_s = time.monotonic()
        with closing(sqlite3.connect(self.file, timeout=60)) as database_:
            while not stop.wait(TICK_S):
                due = round((time.monotonic() - began_s) * self.per_s) - self.written
                try:
                    self._write(database_, min(due, round(self.per_s)))
                except sqlite3.Error as error:
                    self.failures.append(str(error))
                    return

    def _write(self, client: sqlite3.Connection, count: int) -> None:
        with client:
            client.execute(UPSERT, (f"clock {self.name}", str(time.time())))
            for _ in range(count - 1):
                self._change(client)
        self.written += max(1, count)

    def _change(self, client: sqlite3.Connection) -> None:
        chance, value = self.random.randrange(100), f"{self.name}:{self.written}:{'x' * 40}"
        if chance < SHARED_OF_100:
            client.execute(UPSERT, (f"shared {self.random.randrange(SHARED_ROWS)}", value))
        elif chance < SHARED_OF_100 + NEW_OF_100:
            self.new += 1
            client.execute(UPSERT, (f"new {self.name} {self.new}", value))
        elif chance < SHARED_OF_100 + 2 * NEW_OF_100:
            client.execute(DELETE, (f"new {self.name} {self.new - NEW_ROWS}",))
        else:
            client.execute(UPSERT, (f"own {self.name} {self.random.randrange(OWN_ROWS)}", value))


def table_figures(state: Path) -> Iterator[tuple[str, float]]:
    """The figures of each table: of its newest version, of its folder, and of its log's folder."""
    for name in TableName:
        folder, live = state / name, list[int]()
        with suppress(DeltaError, OSError):  # a file went between two looks
            live = pa.table(DeltaTable(folder).get_add_actions())["size_bytes"].to_pylist()
        sizes = [*_sizes(folder)]
        log = [*(folder / "_delta_log").glob("*")]
        versions = [int(one.stem) for one in log if one.suffix == ".json" and one.stem.isdigit()]
        found = (sum(live), len(live), sum(sizes), len(sizes), len(log), max(versions, default=0))
        yield from ((f"{name}.{kind}", n) for kind, n in zip(_KINDS, found, strict=True))


def _sizes(folder: Path) -> Iterator[int]:
    """The bytes of the data files, those of deletion vectors too."""
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):
            if "_delta_log" not in file.parts and file.is_file():
                yield file.stat().st_size


@dataclass(slots=True)
class Soak:
    """Everything that runs, and what was measured; `began_s`: by the monotonic clock."""

    at: Site
    folder: Path
    hub: HubProcess
    clients: list[SteadyClient]
    began_s: float
    samples: list[SoakSample] = field(default_factory=list)

    def measure(self) -> None:
        """Add a sample, to the file too."""
        figures: dict[str, float] = dict(table_figures(self.at.state))
        for kind in _OF_ALL:
            figures[kind] = sum(figures[f"{name}.{kind}"] for name in TableName)
        pids = {"python.bytes": self.hub.pid, "java.bytes": self.hub.java()}
        figures |= {name: resident(pid) if pid else 0 for name, pid in pids.items()}
        clock = rows_of_clock(database(self.at, "b"))
        figures["lag_ms"] = 1_000 * (time.time() - clock)
        figures["written"] = sum(one.written for one in self.clients)
        sample = SoakSample(round(time.monotonic() - self.began_s, 1), figures)
        self.samples.append(sample)
        write_line(self.folder / "soak.csv", sample, FIGURES)

    def draw(self) -> None:
        """Write the picture of all samples."""
        (self.folder / "soak.svg").write_text(picture(self.samples, PANELS))

    def grown(self) -> Iterator[str]:
        """What grows although it should not; what is expected to is said."""
        for name in JUDGED:
            one = growth(self.samples, name)
            text = (
                f"{name} goes from {one.first:,.0f} to {one.last:,.0f} in the last third:"
                f" {one.share:+.0%} of its mean"
            )
            if one.is_too_much and name in EXPECTED:
                _say(f"{text}; expected: {EXPECTED[name]}")
            elif one.is_too_much:
                yield text
            elif name in (*_OF_ALL, *_MEMORY) or name.endswith("live.bytes"):
                _say(text)


def rows_of_clock(file: Path) -> float:
    """When replica a wrote what this one has of its clock; now if it has nothing of it yet."""
    with closing(sqlite3.connect(file, timeout=60)) as client:
        found = client.execute("SELECT v FROM t WHERE k = 'clock a'").fetchone()
    return float(found[0]) if found else time.time()


def soak(folder: Path, seconds: float, seed: int, per_s: float) -> list[str]:
    """Run it; the problems that were found."""
    os.environ |= {f"SLACKWATER_{name}": str(value) for name, value in SETTINGS.items()}
    with ExitStack() as ends:
        broker = Broker.start(folder / "broker")
        ends.callback(broker.kill)
        at = ends.enter_context(site(folder / "site", broker.bootstrap_servers, "soak.", NAMES))
        at.file.write_text(at.file.read_text().replace(QUICK_JAVA, f"{QUICK_JAVA} {WHOLE_HEAP}"))
        for name in NAMES:
            create(at, name)
        hub = ends.enter_context(at.hub())
        agents = [_agent(at, name) for name in NAMES]
        for one in agents:
            ends.callback(one.kill)
        wait_until(lambda: all(captures(at, name) for name in NAMES), lambda: "triggers")
        files = {name: database(at, name) for name in NAMES}
        clients = [
            SteadyClient(files[name], name, random.Random(f"{seed}{name}"), per_s / len(NAMES))
            for name in NAMES
        ]
        soaked = Soak(at, folder, hub, clients, time.monotonic())
        problems = _write(soaked, seconds, agents)
        problems += [*_differences(soaked), *soaked.grown()]
    return problems


def _agent(at: Site, name: str) -> "subprocess.Popen[bytes]":
    command = (sys.executable, "-m", "streaming.cli.main", "agent", "--config", str(at.file))
    options = ("--replica", name, "--database", str(database(at, name)))
    with (at.folder / f"agent-{name}.log").open("ab") as log:
        return subprocess.Popen([*command, *options], stderr=log)


def _write(soaked: Soak, seconds: float, agents: "Sequence[subprocess.Popen[bytes]]") -> list[str]:
    """Write and measure for so long; what ended by itself."""
    stop, ended = threading.Event(), list[str]()
    threads = [
        threading.Thread(target=one.run, args=(stop,), daemon=True) for one in soaked.clients
    ]
    for thread in threads:
        thread.start()
    try:
        while not ended and time.monotonic() < soaked.began_s + seconds:
            time.sleep(EVERY_S)
            soaked.measure()
            soaked.draw()
            ended = [] if soaked.hub.runs() else [f"the hub ended: {soaked.hub.output[-2_000:]}"]
            ended += ["an agent ended" for one in agents if one.poll() is not None]
            ended += [f"a client ended: {text}" for one in soaked.clients for text in one.failures]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return ended


def _differences(soaked: Soak) -> Iterator[str]:
    """Rows that differ once nobody writes, and what `slackwater verify` finds."""
    at = soaked.at
    try:
        wait_until(
            lambda: rows(at, "a") == rows(at, "b") == rows(at, "c"),
            lambda: "equal rows",
            every_s=1,
        )
    except AssertionError as error:
        yield f"the replicas have no equal rows: {error}"
    found = at.slackwater("verify")
    if not found["sound"]:
        yield f"the state is not sound: {json.dumps(found)}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Exit code 0 if everything held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--folder", type=Path, required=True, help="an empty one; it stays")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-second", type=float, default=500, help="changes of all clients")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if any(options.folder.iterdir()):
        parser.error(f"{options.folder} is not empty")
    seconds = options.minutes * 60
    problems = soak(options.folder, seconds, options.seed, options.per_second)
    for problem in problems:
        _say(f"PROBLEM: {problem}")
    return min(1, len(problems))


if __name__ == "__main__":
    sys.exit(main())
