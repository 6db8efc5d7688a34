"""A light process in place of agents: it reads the updates and answers `applied`.

    python -m tests.benchmarks.answerer BOOTSTRAP PREFIX RESULT.json

It ends on SIGTERM and then writes what it saw: deliveries, the time of the last, and latencies.
"""

import json
import re
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from connectors import wire
from streaming.core.record import Applied
from streaming.core.ruv import parse_ruv
from tests.benchmarks.load import REPLICAS, session_of

_HEAD = re.compile(
    rb'"hub_epoch":(\d+),"prev":\d+,"covers":(\d+),"ruv":(\[[^\]]*\]),"chunk":(\d+),"chunks":(\d+)'
)
_SENT = re.compile(rb'"sent_ms":"(\d+)"')


@dataclass
class Seen:
    """What came, for the report."""

    items: int = 0
    last_s: float = 0.0
    latencies_ms: list[int] = field(default_factory=list)


def main(bootstrap: str, prefix: str, result: Path) -> None:
    """Answer until told to end."""
    going = True

    def end(_number: int, _frame: object) -> None:
        nonlocal going
        going = False

    signal.signal(signal.SIGTERM, end)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, max_poll_records=50, fetch_max_wait_ms=10)
    partitions = {TopicPartition(f"{prefix}updates.{name}", 0): name for name in REPLICAS}
    consumer.assign(list(partitions))
    consumer.seek_to_beginning()
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    seen, epochs = Seen(), dict.fromkeys(REPLICAS, 1)
    while going:
        for partition, records in consumer.poll(timeout_ms=20).items():
            name = partitions[partition]
            for record in records:
                answer(producer, f"{prefix}changes.{name}", name, record.value, epochs, seen)
    used = time.process_time()
    report = {
        "items": seen.items,
        "last_s": seen.last_s,
        "cpu_s": used,
        "latencies_ms": seen.latencies_ms,
    }
    result.write_text(json.dumps(report))


def answer(
    producer: KafkaProducer, topic: str, name: str, value: bytes, epochs: dict[str, int], seen: Seen
) -> None:
    """Count a record, note how old its changes are, and answer it when it is the last chunk."""
    head = _HEAD.search(value)
    if head is None:
        raise SystemExit(f"an update without a header: {value[:200]!r}")
    now_s = time.time()
    sent = [int(text) for text in _SENT.findall(value)]
    seen.items += len(sent)
    seen.last_s = now_s
    seen.latencies_ms.extend(round(now_s * 1000) - ms for ms in sent)
    _, covers, ruv, chunk, chunks = head.groups()
    if int(chunk) + 1 == int(chunks):
        applied = Applied(epochs[name], int(covers), 1, parse_ruv(json.loads(ruv)))
        producer.send(topic, value=wire.encode(session_of(name), applied), partition=0)
        epochs[name] += 1


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
