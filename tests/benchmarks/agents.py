"""One light process in place of all agents: it publishes `applied`, and may write at a steady rate.

    python -m tests.benchmarks.agents '{"bootstrap": ..., "prefix": ..., "result": ...}'

What it writes carries the replica's own epoch, which each `applied` raises, so that the MRE moves
as in production. It ends on SIGTERM and then writes its report.
"""

import json
import re
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from subprocess import Popen

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from connectors import wire
from streaming.core.model.ruv import parse_ruv
from streaming.core.records.record import Applied
from tests.benchmarks.load import WRITERS, Load, session_of

_HEAD = re.compile(
    rb'"generation":(\d+),"hub_epoch":\d+,"prev":\d+,"covers":(\d+),"ruv":(\[[^\]]*\]),'
    rb'"chunk":(\d+),"chunks":(\d+)'
)
_SENT = re.compile(rb'"sent_ms":"(\d+)"')
_HEAD_BYTES = 10_000
_TYPE, _CHANGE = b'"type":"', b"change"


@dataclass(frozen=True, slots=True)
class AgentTask:
    """What the process does; `per_s` 0: it only publishes `applied`.

    `is_late`: it reads nothing of what was sent before it started; `first`: the number of
    each writer's first change, and of its epoch. Of what it writes, the first `warm_up_s` are not
    measured.
    """

    bootstrap: str
    prefix: str
    result: str
    names: Sequence[str] = tuple(WRITERS)
    per_s: int = 0
    warm_up_s: float = 0
    seconds: float = 0
    base_s: int = 0
    shared_of_1000: int = 0
    is_late: bool = False
    first: int = 0

    @property
    def changes(self) -> int:
        """How many changes it writes in all."""
        each = round(self.per_s * (self.warm_up_s + self.seconds)) // len(WRITERS)
        return each * len(WRITERS)


@dataclass(slots=True)
class AgentReport:
    """The report of the process."""

    cpu_s: float = 0.0
    written: int = 0
    writing_s: float = 0.0
    latencies_ms: list[int] = field(default_factory=list)


def _sent_ms(update: bytes) -> Iterator[int]:
    """When each change of an update was written; a refresh brings a row of any age once more."""
    for item in update.split(_TYPE)[1:]:
        sent = _SENT.search(item) if item.startswith(_CHANGE) else None
        if sent is not None:
            yield int(sent[1])


class BenchmarkAgents:
    """The replicas of one hub."""

    def __init__(self, task: AgentTask) -> None:
        self.task = task
        self.seen = AgentReport()
        self.consumer = KafkaConsumer(
            bootstrap_servers=task.bootstrap, max_poll_records=50, fetch_max_wait_ms=200
        )
        self.names = {
            TopicPartition(f"{task.prefix}updates.{name}", 0): name for name in task.names
        }
        self.consumer.assign(list(self.names))
        if task.is_late:
            self.consumer.seek_to_end()
        else:
            self.consumer.seek_to_beginning()
        self.producer = KafkaProducer(bootstrap_servers=task.bootstrap)
        self.epochs = dict.fromkeys(task.names, task.first + 1)
        self.load = Load(task.base_s, task.shared_of_1000)
        self.started_s = time.time()
        self.measured_from_ms = round((self.started_s + task.warm_up_s) * 1000)

    def work(self) -> None:
        """Receive, acknowledge and write what is due now."""
        waited_ms = 10 if self.seen.written < self.task.changes else 20
        for partition, records in self.consumer.poll(timeout_ms=waited_ms).items():
            for record in records:
                self._acknowledge(self.names[partition], record.value)
        self._write()

    def _acknowledge(self, name: str, value: bytes) -> None:
        """Record the age of its changes; publish `applied` after the last chunk."""
        head = _HEAD.search(value[:_HEAD_BYTES])
        if head is None:
            raise SystemExit(f"an update without a header: {value[:200]!r}")
        if self.task.per_s:
            now_ms, measured_from_ms = round(time.time() * 1000), self.measured_from_ms
            times = _sent_ms(value)
            self.seen.latencies_ms += [now_ms - ms for ms in times if ms >= measured_from_ms]
        generation, covers, ruv, chunk, chunks = head.groups()
        if int(chunk) + 1 == int(chunks):
            reached = parse_ruv(json.loads(ruv))
            applied = Applied(self.epochs[name], int(covers), int(generation), reached)
            self._send(name, wire.encode(session_of(name), applied))
            self.epochs[name] += 1

    def _write(self) -> None:
        """Write what is due at this rate, the writers in rotation."""
        task, seen = self.task, self.seen
        if seen.written >= task.changes:
            return
        seen.writing_s = time.time() - self.started_s
        due = min(int(seen.writing_s * task.per_s), task.changes)
        writers = list(WRITERS)
        for number in range(seen.written, due):
            name = writers[number % len(writers)]
            n, now_ms = task.first + number // len(writers), time.time_ns() // 1_000_000
            text = self.load.change(name, n, self.epochs[name], now_ms)
            self._send(name, text.encode())
        seen.written = max(due, seen.written)

    def _send(self, name: str, value: bytes) -> None:
        topic = f"{self.task.prefix}changes.{name}"
        self.producer.send(topic, key=name.encode(), value=value, partition=0)

    def close(self) -> None:
        """Write the report."""
        self.producer.flush()
        self.seen.cpu_s = time.process_time()
        Path(self.task.result).write_text(json.dumps(asdict(self.seen)))


@contextmanager
def agents_running(task: AgentTask) -> Iterator[Popen[bytes]]:
    """The running process; its report exists when it has ended."""
    text = json.dumps(asdict(task))
    process = Popen([sys.executable, "-m", "tests.benchmarks.agents", text])
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def report_of(task: AgentTask) -> AgentReport:
    """The report that the process wrote."""
    found: Mapping[str, object] = json.loads(Path(task.result).read_text())
    return AgentReport(**found)  # type: ignore[arg-type]


def main(task: AgentTask) -> None:
    """Work until SIGTERM."""
    running = True

    def end(_number: int, _frame: object) -> None:
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, end)
    agents = BenchmarkAgents(task)
    while running:
        agents.work()
    agents.close()


if __name__ == "__main__":
    main(AgentTask(**json.loads(sys.argv[1])))
