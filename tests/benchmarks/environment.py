"""The environment of measures: a broker, a session, and hubs with their own topics and state."""

import gc
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from connectors.kafka.embedded.broker import Broker
from connectors.kafka.topics import ensure_topics
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.hub.observe.view import HubView
from streaming.hub.service import Service
from streaming.jvm.private import jvm_pid
from tests.benchmarks.agents import AgentReport, AgentTask, agents_running, report_of
from tests.benchmarks.counting import Counted, count
from tests.benchmarks.load import TABLE, WRITERS, Load, preload, publish_hellos
from tests.benchmarks.memory import MemoryUse, watched
from tests.benchmarks.rounds import Round

EVENTS_PER_BATCH = 200_000
WAIT_S = 3_600


@dataclass(frozen=True, slots=True)
class HubKind:
    """How a measure's hub differs from the defaults."""

    name: str
    replicas: int = len(WRITERS)
    function: str = "EPOCH"
    events_per_batch: int = EVENTS_PER_BATCH
    driver_batch_records: int = EVENTS_PER_BATCH * 10
    condition: str = ""
    """of the rows that each agreement sends; "": all"""


@dataclass(frozen=True, slots=True)
class BenchmarkEnvironment:
    """A broker, a session, and a folder."""

    folder: Path
    broker: Broker
    spark: SparkSession

    @property
    def bootstrap(self) -> str:
        """The address of the broker."""
        return self.broker.bootstrap_servers

    def config(self, kind: HubKind) -> Config:
        """A hub of its own, with topics of its own."""
        names = [*WRITERS, *(f"reader{n}" for n in range(kind.replicas - len(WRITERS)))]
        rows = f'\nrows.{TABLE.name} = "{kind.condition}"' if kind.condition else ""
        lines = [
            f'[hub]\nstate = "{kind.name}"\ntopic_prefix = "{kind.name}."',
            f'[kafka]\nbootstrap_servers = "{self.bootstrap}"',
            f"[limits]\noffsets_per_batch = {kind.events_per_batch}",
            f"driver_batch_records = {kind.driver_batch_records}",
            *(f'[[replicas]]\nname = "{n}"\nrid = {r}' for r, n in enumerate(names, 1)),
            f'[[tables]]\nname = "{TABLE.name}"\nkey = {json.dumps(TABLE.key)}',
            f'function = "{kind.function}"\n[tables.columns]',
            *(f'{column} = "{type_}"' for column, type_ in TABLE.columns.items()),
            *(f'[[agreements]]\nname = "{n}"\nconsumer = "{n}"{rows}' for n in names),
        ]
        path = self.folder / f"{kind.name}.toml"
        path.write_text("\n".join(lines))
        config = load(path)
        topics = [topic(n) for topic in (config.changes_topic, config.updates_topic) for n in names]
        ensure_topics(self.bootstrap, {}, topics, config.limits.record_bytes)
        return config

    def task(self, config: Config) -> AgentTask:
        """The task of a hub's agents that write nothing."""
        prefix = config.hub.topic_prefix
        names = [replica.name for replica in config.replicas]
        return AgentTask(self.bootstrap, prefix, str(self.folder / f"{prefix}agents.json"), names)

    def writing(
        self, config: Config, load: Load, per_s: int, seconds: float, warm_up_s: float = 0
    ) -> AgentTask:
        """The task of agents that write this load at a steady rate; the warm-up comes before."""
        return replace(
            self.task(config),
            per_s=per_s,
            warm_up_s=warm_up_s,
            seconds=seconds,
            base_s=load.base_s,
            shared_of_1000=load.shared_of_1000,
        )


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """When a batch was planned and delivered, and the counts of its records."""

    planned_s: float
    published_s: float
    judged: int
    quarantined: int
    hub_epoch: int


@dataclass(slots=True)
class HubProbe:
    """Records every batch of a hub, called at its fault points."""

    service: Service | None = None
    batches: list[BatchTimes] = field(default_factory=list)
    planned_s: float = 0.0
    judged: int = 0
    quarantined: int = 0

    def __call__(self, point: FaultPoint) -> None:
        """Called by the hub at each point."""
        if point is FaultPoint.AFTER_PLAN:
            self.planned_s = time.time()
        if point is FaultPoint.AFTER_PUBLISH and self.service is not None:
            last = self.service.hub.ledger.last
            judged, kept = (last.counts.get(name, 0) for name in ("judged", "quarantined"))
            epoch = last.state.hub_epoch
            self.batches.append(BatchTimes(self.planned_s, time.time(), judged, kept, epoch))
            self.judged += judged
            self.quarantined += kept

    @property
    def working(self) -> list[BatchTimes]:
        """The batches that judged something."""
        return [batch for batch in self.batches if batch.judged]

    @property
    def seconds(self) -> float:
        """From the first of these to the delivery of the last."""
        batches = self.working
        return batches[-1].published_s - batches[0].planned_s


@dataclass(frozen=True, slots=True)
class HubRun:
    """A finished run of a hub, counted."""

    config: Config
    probe: HubProbe
    counted: Counted
    seen: AgentReport
    memory: MemoryUse

    @property
    def events_per_s(self) -> float:
        """Its speed."""
        return self.counted.written / self.probe.seconds


def run_preloaded(
    environment: BenchmarkEnvironment, kind: HubKind, load: Load, each: int
) -> HubRun:
    """A new hub processes what its topics hold: `each` changes of every writer."""
    config = environment.config(kind)
    fill(environment, config, load, each)
    return process_backlog(environment, config, load, each)


def fill(environment: BenchmarkEnvironment, config: Config, load: Load, each: int) -> None:
    """Hello of every replica, then the changes."""
    topics = topics_of(config)
    publish_hellos(environment.bootstrap, topics)
    preload(environment.bootstrap, topics, load, 0, each)


def topics_of(config: Config) -> Mapping[str, str]:
    """Replica -> its changes topic."""
    return {replica.name: config.changes_topic(replica.name) for replica in config.replicas}


def process_backlog(
    environment: BenchmarkEnvironment, config: Config, load: Load, each: int
) -> HubRun:
    """Run the hub and its agents until everything is judged and delivered, then count."""
    probe, task = HubProbe(), environment.task(config)
    gc.collect()  # of the hub before: in production a process has one
    with watching(environment) as memory, agents_running(task), running(environment, config, probe):
        wait(lambda: probe.judged >= each * len(load.writers), "the hub judged everything", probe)
    counted = count(config, environment.bootstrap, load, each)
    return HubRun(config, probe, counted, report_of(task), memory)


@contextmanager
def watching(environment: BenchmarkEnvironment) -> Iterator[MemoryUse]:
    """The memory of this process and the JVM."""
    with watched([os.getpid(), jvm_pid(environment.spark)]) as memory:
        yield memory


@contextmanager
def running(
    environment: BenchmarkEnvironment,
    config: Config,
    probe: HubProbe,
    view: HubView | None = None,
) -> Iterator[Service]:
    """The hub running in this process, in its own thread."""
    service, end = Service(config, environment.spark, probe, view), threading.Event()
    probe.service = service
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


def wait(condition: Callable[[], bool], what: str, probe: HubProbe | None = None) -> None:
    """Wait until the condition holds; SystemExit if the hub ends or it takes too long."""
    limit = time.monotonic() + WAIT_S
    while not condition():
        service = probe.service if probe else None
        if time.monotonic() > limit or (service is not None and service.ended):
            raise SystemExit(f"timed out or the hub ended while waiting for: {what}")
        time.sleep(0.1)


def preloaded_by_turns(
    environment: BenchmarkEnvironment,
    turns: int,
    each: int,
    sides: Mapping[str, Callable[[str], tuple[HubKind, Load]]],
) -> tuple[list[Round], int]:
    """The speed of each side in rounds, and the peak of memory; one turn before them warms up.

    `sides`: what a side's hub is like, which has the given name, and its load.
    """
    rounds, peak_mib = list[Round](), 0
    for turn in range(turns + 1):
        found = {}
        for side, made in sides.items():
            run = run_preloaded(environment, *made(f"{side}{turn}"), each)
            peak_mib = max(peak_mib, run.memory.peak_mib)
            found[side] = run.events_per_s
        rounds.append(found)
    return rounds[1:], peak_mib
