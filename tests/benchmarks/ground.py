"""What every measure stands on: a broker, a session, and hubs with their own topics and state."""

import gc
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from checkpoints.faults import Point
from connectors.kafka.broker import Broker
from connectors.kafka.topics import ensure_topics
from streaming.config.config import Config, load
from streaming.hub.service import Service
from streaming.jvm.private import jvm_pid
from tests.benchmarks.agents import Seen, Task, answering, report_of
from tests.benchmarks.counting import Counted, count
from tests.benchmarks.load import TABLE, WRITERS, Load, greet, preload
from tests.benchmarks.memory import Memory, watched

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


@dataclass(frozen=True, slots=True)
class Ground:
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
        lines = [
            f'[hub]\nstate = "{kind.name}"\ntopic_prefix = "{kind.name}."',
            f'[kafka]\nbootstrap_servers = "{self.bootstrap}"',
            f"[limits]\noffsets_per_batch = {kind.events_per_batch}",
            f"driver_batch_records = {kind.driver_batch_records}",
            *(f'[[replicas]]\nname = "{n}"\nrid = {r}' for r, n in enumerate(names, 1)),
            f'[[tables]]\nname = "{TABLE.name}"\nkey = {json.dumps(TABLE.key)}',
            f'function = "{kind.function}"\n[tables.columns]',
            *(f'{column} = "{type_}"' for column, type_ in TABLE.columns.items()),
            *(f'[[agreements]]\nname = "{n}"\nconsumer = "{n}"' for n in names),
        ]
        path = self.folder / f"{kind.name}.toml"
        path.write_text("\n".join(lines))
        config = load(path)
        topics = [topic(n) for topic in (config.changes_topic, config.updates_topic) for n in names]
        ensure_topics(self.bootstrap, {}, topics, config.limits.record_bytes)
        return config

    def task(self, config: Config) -> Task:
        """What the agents of a hub do when they write nothing."""
        prefix = config.hub.topic_prefix
        names = [replica.name for replica in config.replicas]
        return Task(self.bootstrap, prefix, str(self.folder / f"{prefix}agents.json"), names)


@dataclass(frozen=True, slots=True)
class Batch:
    """When a batch began (its plan stands) and was delivered, and what became of its records."""

    planned_s: float
    published_s: float
    judged: int
    quarantined: int
    hub_epoch: int


@dataclass(slots=True)
class Probe:
    """Notes every batch of a hub, as its fault points pass."""

    service: Service | None = None
    batches: list[Batch] = field(default_factory=list)
    planned_s: float = 0.0
    judged: int = 0
    quarantined: int = 0

    def __call__(self, point: Point) -> None:
        """Called by the hub at each point."""
        if point is Point.AFTER_PLAN:
            self.planned_s = time.time()
        if point is Point.AFTER_PUBLISH and self.service is not None:
            last = self.service.hub.ledger.last
            judged, kept = (last.counts.get(name, 0) for name in ("judged", "quarantined"))
            epoch = last.state.hub_epoch
            self.batches.append(Batch(self.planned_s, time.time(), judged, kept, epoch))
            self.judged += judged
            self.quarantined += kept

    @property
    def working(self) -> list[Batch]:
        """The batches that judged something."""
        return [batch for batch in self.batches if batch.judged]

    @property
    def seconds(self) -> float:
        """From the first of these to the delivery of the last."""
        batches = self.working
        return batches[-1].published_s - batches[0].planned_s


@dataclass(frozen=True, slots=True)
class Run:
    """A hub that has done its work, counted."""

    config: Config
    probe: Probe
    counted: Counted
    seen: Seen
    memory: Memory

    @property
    def events_per_s(self) -> float:
        """Its speed."""
        return self.counted.written / self.probe.seconds


def run_preloaded(ground: Ground, kind: HubKind, load: Load, each: int) -> Run:
    """A new hub works off what lies in its topics: `each` changes of every writer."""
    config = ground.config(kind)
    fill(ground, config, load, each)
    return work_off(ground, config, load, each)


def fill(ground: Ground, config: Config, load: Load, each: int) -> None:
    """Hello of every replica, then the changes."""
    topics = topics_of(config)
    greet(ground.bootstrap, topics)
    preload(ground.bootstrap, topics, load, 0, each)


def topics_of(config: Config) -> Mapping[str, str]:
    """Replica -> the topic in which it speaks."""
    return {replica.name: config.changes_topic(replica.name) for replica in config.replicas}


def work_off(ground: Ground, config: Config, load: Load, each: int) -> Run:
    """The hub and its agents at work until all is judged and delivered; then it is counted."""
    probe, task = Probe(), ground.task(config)
    gc.collect()  # the hub before this one: in life a process has one
    with watching(ground) as memory, answering(task), running(ground, config, probe):
        wait(lambda: probe.judged >= each * len(load.writers), "the hub judged everything", probe)
    counted = count(config, ground.bootstrap, load, each)
    return Run(config, probe, counted, report_of(task), memory)


@contextmanager
def watching(ground: Ground) -> Iterator[Memory]:
    """The memory of this process and the JVM."""
    with watched([os.getpid(), jvm_pid(ground.spark)]) as memory:
        yield memory


@contextmanager
def running(ground: Ground, config: Config, probe: Probe) -> Iterator[Service]:
    """The hub at work in this process, in a thread of its own."""
    service, end = Service(config, ground.spark, probe), threading.Event()
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


def wait(condition: Callable[[], bool], what: str, probe: Probe | None = None) -> None:
    """Wait until the condition holds; an ended hub ends the waiting."""
    limit = time.monotonic() + WAIT_S
    while not condition():
        service = probe.service if probe else None
        if time.monotonic() > limit or (service is not None and service.ended):
            raise SystemExit(f"this did not come true: {what}")
        time.sleep(0.1)
