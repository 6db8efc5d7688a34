"""The input of a benchmark: changes of three replicas, preloaded or at a steady rate."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from kafka import KafkaProducer

from connectors import wire
from streaming.core.change import Change, Op
from streaming.core.csn import CsnParts, format_csn
from streaming.core.record import Hello
from streaming.core.ruv import NOTHING_KNOWN
from streaming.core.table import ColumnType, Table

TABLE = Table(
    "account",
    ("id",),
    {
        "id": ColumnType.INT64,
        "owner": ColumnType.TEXT,
        "balance": ColumnType.DECIMAL,
        "sent_ms": ColumnType.INT64,
    },
)
REPLICAS = {"alpha": 1, "beta": 2, "gamma": 3}
ROWS_OF_ONE = 50_000
"""Every replica writes rows of its own, so that only shared ones are contended."""
SHARED_ROWS = 1_000
"""The rows that all of them write."""


@dataclass(slots=True)
class Writer:
    """One replica's changes: CSNs that rise, own rows, and now and then a shared one."""

    name: str
    rid: int
    shared_of_1000: int
    base_s: int
    written: int = 0
    shared: int = 0

    def change(self, now_ms: int) -> Change:
        """The next change; `sent_ms` in its row tells when it was made."""
        number = self.written
        self.written += 1
        csn = format_csn(CsnParts(self.base_s + number // 60_000, number % 60_000, self.rid, 0))
        row = self.rid * ROWS_OF_ONE + number % ROWS_OF_ONE
        if number % 1_000 < self.shared_of_1000:
            row = self.shared % SHARED_ROWS
            self.shared += 1
        after = (
            f'{{"id":"{row}","owner":"customer {row} of the bank at the harbour",'
            f'"balance":"{number}.25","sent_ms":"{now_ms}"}}'
        )
        return Change(csn, self.rid, 1, TABLE.name, f'{{"id":"{row}"}}', Op.UPDATE, after)


def writers(shared_of_1000: int) -> list[Writer]:
    """One writer for each replica."""
    base_s = int(time.time()) - 3_600
    return [Writer(name, rid, shared_of_1000, base_s) for name, rid in REPLICAS.items()]


def session_of(name: str) -> str:
    """The session in which a benchmark's replica speaks."""
    return f"session-of-{name}"


def greet(producer: KafkaProducer, topics: dict[str, str]) -> None:
    """Say hello for every replica."""
    for name, topic in topics.items():
        hello = Hello(0, 0, 0, NOTHING_KNOWN, None, lost=False)
        producer.send(topic, value=wire.encode(session_of(name), hello), partition=0)
    producer.flush()


def preload(
    producer: KafkaProducer, topics: dict[str, str], each: int, shared_of_1000: int
) -> None:
    """Write so many changes of each replica as fast as the broker takes them."""
    for writer in writers(shared_of_1000):
        now_ms = time.time_ns() // 1_000_000
        for _ in range(each):
            send(producer, topics[writer.name], writer, now_ms)
    producer.flush()


def send(producer: KafkaProducer, topic: str, writer: Writer, now_ms: int) -> None:
    """Hand one change to the producer."""
    value = wire.encode(session_of(writer.name), writer.change(now_ms))
    producer.send(topic, value=value, partition=0)


def steady(
    producer: KafkaProducer, topics: dict[str, str], per_s: int, seconds: float
) -> Iterator[int]:
    """Write at a steady rate, all replicas in turn; yields the number written, each 10 ms."""
    ready, started, done = writers(10), time.monotonic(), 0
    while (elapsed_s := time.monotonic() - started) < seconds:
        due = int(elapsed_s * per_s)
        now_ms = time.time_ns() // 1_000_000
        while done < due:
            writer = ready[done % len(ready)]
            send(producer, topics[writer.name], writer, now_ms)
            done += 1
        yield done
        time.sleep(0.01)
    producer.flush()
    yield done
