"""Agents of a replica as processes, and the other end of their topics."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from kafka import KafkaConsumer, TopicPartition

from connectors import wire
from connectors.agent.settings import AgentSettings, DatabaseAddress
from connectors.kafka.sink import UpdatesSink
from connectors.kafka.topics import ensure_topics
from connectors.log_format import LogFormat
from streaming.core.model.change import Change
from streaming.core.model.ruv import Ruv
from streaming.core.records.record import (
    Applied,
    Hello,
    Item,
    ItemType,
    Record,
    Update,
)
from tests.connectors.sqlite.sqlite_replica import RID, Replica
from tests.reference.wire import encode_update

T = TypeVar("T")
TIMEOUT_S = 60
RECONNECT_MS = 500
"""The longest time between two attempts to reach a broker that a test stopped."""
RUV = Ruv("5f00").with_csn("65e0f1c0000500020000")


def until(question: Callable[[], T]) -> T:
    """The first answer that is true; what it waits for may take long on a busy machine."""
    deadline = time.monotonic() + TIMEOUT_S
    while not (answer := question()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return answer


@dataclass(slots=True)
class Hub:
    """The other end of the two topics: reads everything, sends what a test gives it.

    Whoever waits asks fifty times a second: what was read is kept, and so is the connection.
    """

    bootstrap: str
    prefix: str
    sink: UpdatesSink
    consumer: KafkaConsumer
    read: list[Any] = field(default_factory=list)

    def records(self) -> list[Any]:
        """Every record of the changes topic, as Kafka has it."""
        (partition,) = self.consumer.assignment()
        end = self.consumer.end_offsets([partition])[partition]
        while self.consumer.position(partition) < end:
            self.read += self.consumer.poll(timeout_ms=1000).get(partition, [])
        return [*self.read]

    def received(self, *kinds: type[Record]) -> list[tuple[str, Any]]:
        """(session, record) of every record of these kinds."""
        decoded = [wire.decode(record.value) for record in self.records()]
        return [(session, record) for session, record in decoded if isinstance(record, kinds)]

    def session(self, number: int = 1) -> str:
        """The session of the so manieth hello, once it is there."""
        return until(lambda: self.received(Hello)[number - 1 : number])[0][0]

    def send(self, *updates: Update) -> None:
        """Write updates to the topic of the agreement."""
        for update in updates:
            self.sink.send(f"{self.prefix}updates.to-r7", b"to-r7", encode_update(update))
        self.sink.flush()

    def changes(self) -> list[Change]:
        """The changes in the topic."""
        return [change for _, change in self.received(Change)]

    def applied(self) -> list[tuple[str, int]]:
        """(session, covers) of every `applied`."""
        return [(session, record.covers) for session, record in self.received(Applied)]


def update(session: str, hub_epoch: int, prev: int, *ids: int) -> Update:
    """A batch of one chunk that writes rows of these ids."""
    items = tuple(
        Item(
            ItemType.CHANGE,
            "items",
            f'{{"id":"{id_}"}}',
            "insert",
            f'{{"id":"{id_}","name":null,"price":"{hub_epoch}"}}',
            "65e0f1c0000500020000",
            2,
        )
        for id_ in ids
    )
    return Update("to-r7", 1, session, hub_epoch, prev, hub_epoch, RUV, 0, 1, items)


@dataclass(slots=True)
class Process:
    """An agent's process and its log."""

    process: "subprocess.Popen[bytes]"
    log_path: Path

    def kill(self) -> None:
        """As a crash would."""
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """As an operator would; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT_S)

    def log(self) -> str:
        """What it has logged so far."""
        return self.log_path.read_text()


@dataclass(slots=True)
class Agents:
    """Starts agents of one replica, and sees to it that none is left."""

    settings: AgentSettings
    folder: Path
    started: list[Process]

    def start(self) -> Process:
        """One more."""
        document = self.folder / "settings.json"
        document.write_text(self.settings.text())
        log_path = self.folder / f"agent{len(self.started)}.log"
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "connectors.sqlite", str(document)], stderr=log
            )
        self.started.append(Process(process, log_path))
        return self.started[-1]


def settings_of(replica: Replica, bootstrap: str, prefix: str) -> AgentSettings:
    """The settings of the replica's agent."""
    topics = f"{prefix}changes.r7", f"{prefix}updates.to-r7"
    text = LogFormat.TEXT
    return AgentSettings(
        DatabaseAddress("sqlite", str(replica.path)),
        "r7",
        RID,
        bootstrap,
        *topics,
        replica.tables,
        log_format=text,
    )


@contextmanager
def hub_at(bootstrap: str, prefix: str) -> Iterator[Hub]:
    """Both topics, and the other end of them."""
    ensure_topics(bootstrap, {}, [f"{prefix}changes.r7", f"{prefix}updates.to-r7"], 1_000_000)
    sink = UpdatesSink(bootstrap, {})
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, fetch_max_wait_ms=1, reconnect_backoff_max_ms=RECONNECT_MS
    )
    partition = TopicPartition(f"{prefix}changes.r7", 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    try:
        yield Hub(bootstrap, prefix, sink, consumer)
    finally:  # a client that looks for its broker for ever disturbs the tests behind a failed one
        consumer.close()
        sink.close()


@contextmanager
def agents_of(settings: AgentSettings, folder: Path) -> Iterator[Agents]:
    """The agents of a replica; all are stopped at the end."""
    agents = Agents(settings, folder, [])
    try:
        yield agents
    finally:
        for one in agents.started:
            one.kill()


def write(replica: Replica, first: int, count: int) -> None:
    """Commit so many changes."""
    for id_ in range(first, first + count):
        replica.client.execute("INSERT INTO items (id) VALUES (?)", (id_,))
