"""`make bench-quick`: one table, and the same numbers in benchmarks/latest.json.

python -m tests.benchmarks.quick [--events N] [--seconds S] [--rate PER_S]
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

from kafka import KafkaProducer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as Printed

from checkpoints.faults import Point
from checkpoints.reader import open_state
from checkpoints.tables import TableName
from connectors.broker import Broker
from connectors.kafka import end_offsets, ensure_topics, source_options
from streaming.config import Config, load
from streaming.service import Service, rules_of
from streaming.spark import session
from streaming.stages.read import batch
from streaming.stages.skim import skim
from tests.benchmarks.load import REPLICAS, TABLE, greet, preload, steady

RESULT = Path("benchmarks/latest.json")
EVENTS_PER_BATCH = 200_000
WAIT_S = 300
CONTENDED_EVENTS = 100_000
SHARED_OF_1000 = {0: 0, 1: 15, 50: 750}
"""Percent of conflicts -> how many of 1,000 changes go to rows that all write: a third wins."""


@dataclass
class Probe:
    """Notes when batches began and ended, as the hub's fault points pass."""

    planned: list[float] = field(default_factory=list)
    published: list[float] = field(default_factory=list)

    def __call__(self, point: Point) -> None:
        """Called by the hub at each point."""
        if point is Point.AFTER_PLAN:
            self.planned.append(time.time())
        if point is Point.AFTER_PUBLISH:
            self.published.append(time.time())


@dataclass
class Ground:
    """A broker, a session, and a place for the state of each measure."""

    folder: Path
    broker: Broker
    spark: SparkSession

    def config(self, name: str) -> Config:
        """A hub of its own, with topics of its own."""
        lines = [
            f'[hub]\nstate = "{name}"\ntopic_prefix = "{name}."',
            f'[kafka]\nbootstrap_servers = "{self.broker.bootstrap_servers}"',
            f"[limits]\noffsets_per_batch = {EVENTS_PER_BATCH}",
            *(f'[[replicas]]\nname = "{n}"\nrid = {r}' for n, r in REPLICAS.items()),
            f'[[tables]]\nname = "{TABLE.name}"\nkey = {json.dumps(TABLE.key)}\n[tables.columns]',
            *(f'{column} = "{kind}"' for column, kind in TABLE.columns.items()),
            *(f'[[agreements]]\nname = "{n}"\nconsumer = "{n}"' for n in REPLICAS),
        ]
        path = self.folder / f"{name}.toml"
        path.write_text("\n".join(lines))
        config = load(path)
        topics = [config.changes_topic(n) for n in REPLICAS] + [
            config.updates_topic(n) for n in REPLICAS
        ]
        ensure_topics(self.broker.bootstrap_servers, {}, topics, config.limits.record_bytes)
        return config

    def producer(self) -> KafkaProducer:
        """A producer for load."""
        return KafkaProducer(
            bootstrap_servers=self.broker.bootstrap_servers,
            compression_type="lz4",
            linger_ms=5,
            batch_size=2**18,
        )


def main() -> int:
    """Measure, print, write."""
    options = _options()
    with tempfile.TemporaryDirectory() as name, Broker.start(Path(name) / "broker") as broker:
        warehouse = {"spark.sql.warehouse.dir": (Path(name) / "warehouse").as_uri()}
        spark = session("benchmark", warehouse)
        ground = Ground(Path(name), broker, spark)
        numbers: dict[str, object] = {
            "machine": _machine(),
            "throughput": throughput(ground, options.events),
            "contention": contention(ground),
        }
        for per_s in options.rate:
            numbers[f"latency_{per_s}"] = latency(ground, per_s, options.seconds)
        spark.stop()
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(numbers, indent=2) + "\n")
    _print(numbers)
    return 0


def throughput(ground: Ground, events: int) -> dict[str, float]:
    """Preloaded changes through the hub, against only reading and validating them."""
    config = ground.config("throughput")
    topics = {n: config.changes_topic(n) for n in REPLICAS}
    producer = ground.producer()
    greet(producer, topics)
    preload(producer, topics, events // len(REPLICAS), shared_of_1000=10)
    written = events // len(REPLICAS) * len(REPLICAS)
    bound_s = min(_read_and_validate(ground, config) for _ in range(2))
    probe = Probe()
    with answering(ground, config) as result, running(ground, config, probe):
        _wait(lambda: _judged(config) >= written, "the hub judged everything")
        ended_s = probe.published[-1]
    seen = json.loads(result.read_text())
    first = _first_large(config)
    hub_s = ended_s - probe.planned[first]
    totals = open_state(config.hub.state).commit.totals  # type: ignore[union-attr]
    deliveries = (totals["accepted"]) * (len(REPLICAS) - 1)
    return {
        "events": written,
        "bound_events_per_s": round(written / bound_s),
        "events_per_s": round(written / hub_s),
        "ratio_to_bound": round(bound_s / hub_s, 3),
        "rejected": totals["rejected"],
        "deliveries_expected": deliveries,
        "items_seen": seen["items"],
        "answerer_cpu_s": round(seen["cpu_s"], 2),
    }


def contention(ground: Ground) -> dict[str, float]:
    """What conflicts cost under EPOCH: the better of two runs each, but one where half conflict."""
    best: dict[int, Contended] = {}
    for number, percent in enumerate((0, 1, 0, 1, 50)):
        one = contended(ground, f"contention{number}", SHARED_OF_1000[percent])
        best[percent] = max(one, best.get(percent, one), key=lambda c: c.events_per_s)
    numbers: dict[str, float] = {"events": CONTENDED_EVENTS // len(REPLICAS) * len(REPLICAS)}
    for percent, found in best.items():
        numbers[f"events_per_s_{percent}_percent"] = round(found.events_per_s)
        numbers[f"conflicts_{percent}_percent"] = found.conflicts
        numbers[f"ratio_{percent}_percent"] = round(found.events_per_s / best[0].events_per_s, 3)
    return numbers


@dataclass(frozen=True)
class Contended:
    """One run: its speed, and the conflicts that it really had."""

    events_per_s: float
    conflicts: int


def contended(ground: Ground, name: str, shared_of_1000: int) -> Contended:
    """Preloaded changes through a hub, some of them to rows that all replicas write."""
    config = ground.config(name)
    topics = {n: config.changes_topic(n) for n in REPLICAS}
    producer = ground.producer()
    greet(producer, topics)
    preload(producer, topics, CONTENDED_EVENTS // len(REPLICAS), shared_of_1000)
    written = CONTENDED_EVENTS // len(REPLICAS) * len(REPLICAS)
    probe = Probe()
    with answering(ground, config), running(ground, config, probe):
        _wait(lambda: _judged(config) >= written, "the hub judged everything")
        _wait(lambda: len(probe.published) == len(probe.planned), "the hub published it")
        ended_s = probe.published[-1]
    return Contended(written / (ended_s - probe.planned[_first_large(config)]), _conflicts(config))


def _conflicts(config: Config) -> int:
    """The recorded losers that were concurrent by the facts beside them."""
    columns = ["row_epoch", "realign_epoch", "mre"]
    rows = open_state(config.hub.state).read(TableName.CONFLICTS, columns=columns).to_pylist()
    return sum(max(row["row_epoch"], row["realign_epoch"]) > row["mre"] for row in rows)


def latency(ground: Ground, per_s: int, seconds: float) -> dict[str, float]:
    """From the change in the origin's topic to the record in the others' updates topics."""
    config = ground.config(f"latency{per_s}")
    topics = {n: config.changes_topic(n) for n in REPLICAS}
    producer = ground.producer()
    greet(producer, topics)
    probe = Probe()
    with answering(ground, config) as result, running(ground, config, probe):
        _wait(
            lambda: _judged(config) >= 0 and len(probe.published) > 1, "the hub answered the hellos"
        )
        written = 0
        for written in steady(producer, topics, per_s, seconds):  # noqa: B007
            pass
        _wait(lambda: _judged(config) >= written, "the hub judged everything")
        time.sleep(1)
    seen = json.loads(result.read_text())["latencies_ms"]
    warm = seen[len(seen) // 5 :]
    cuts = quantiles(warm, n=100)
    durations = [e - b for b, e in zip(probe.planned, probe.published, strict=False)]
    return {
        "changes": written,
        "deliveries": len(seen),
        "p50_s": round(cuts[49] / 1000, 3),
        "p99_s": round(cuts[98] / 1000, 3),
        "batches": len(durations),
        "batch_p50_s": round(quantiles(durations, n=100)[49], 3),
    }


@contextmanager
def running(ground: Ground, config: Config, probe: Probe) -> Iterator[Service]:
    """The hub at work in this process, in a thread of its own."""
    service, end = Service(config, ground.spark, probe), threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            service.run(end)
        except BaseException as error:  # noqa: BLE001 - it is raised below
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield service
    finally:
        end.set()
        thread.join()
    if failures:
        raise failures[0]


@contextmanager
def answering(ground: Ground, config: Config) -> Iterator[Path]:
    """The light process that answers `applied`; its report is there when it has ended."""
    result = ground.folder / f"{config.hub.topic_prefix}answerer.json"
    command = [sys.executable, "-m", "tests.benchmarks.answerer"]
    arguments = [ground.broker.bootstrap_servers, config.hub.topic_prefix, str(result)]
    process = subprocess.Popen([*command, *arguments])
    try:
        yield result
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _read_and_validate(ground: Ground, config: Config) -> float:
    """Seconds to read and validate all input with the hub's own stages, and nothing else."""
    topics = {config.changes_topic(n): r for n, r in REPLICAS.items()}
    kafka = config.kafka
    ends = end_offsets(kafka.bootstrap_servers, {}, list(topics))
    source = source_options(kafka.bootstrap_servers, kafka.options)
    records = batch(ground.spark, source, topics, dict.fromkeys(topics, 0), ends)
    facts = skim(records, topics, rules_of(config).tables)
    started = time.perf_counter()
    facts.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def _judged(config: Config) -> int:
    commit = open_state(config.hub.state).commit
    return commit.totals.get("judged", 0) if commit else 0


def _first_large(config: Config) -> int:
    """Which batch, from 0, was the first with changes: those before only greeted."""
    rows = open_state(config.hub.state).read(TableName.CHANGELOG, columns=["batch"])
    return int(min(rows["batch"].to_pylist())) - 1


def _wait(holds, claim: str) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
    limit = time.monotonic() + WAIT_S
    while not holds():
        if time.monotonic() > limit:
            raise SystemExit(f"not within {WAIT_S} s: {claim}")
        time.sleep(0.5)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=600_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rate", type=int, nargs="*", default=[2_000])
    return parser.parse_args()


def _machine() -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def _print(numbers: dict[str, object]) -> None:
    table = Printed("measure", "value")
    for measure, values in numbers.items():
        if isinstance(values, dict):
            for name, value in values.items():
                table.add_row(
                    f"{measure}.{name}", f"{value:,}" if isinstance(value, int) else str(value)
                )
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
