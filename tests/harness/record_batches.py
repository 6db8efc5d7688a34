"""Record batches as any client may write them, and as a disk may spoil them."""

from collections.abc import Sequence
from os import SEEK_END
from pathlib import Path

from confluent_kafka import Producer

from connectors.kafka.embedded.broker import Broker

_BYTES = 1_000_000_000


def send_batch(broker: Broker, topic: str, codec: str, values: Sequence[bytes]) -> None:
    """Write these records as one batch, however large they are before they are compressed."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "compression.type": codec,
            "linger.ms": 60_000,
            "message.max.bytes": _BYTES,
            "batch.size": _BYTES,
            "queue.buffering.max.kbytes": 2_000_000,
        }
    )
    for value in values:
        producer.produce(topic, value, b"key", 0)
    assert producer.flush(60) == 0


def break_last_batch(base: Path, topic: str) -> None:
    """Change a bit of it on the disk of the broker whose folder is in this one."""
    (file,) = {one.resolve() for one in base.glob(f"broker*/data/{topic}-0/*.log")}
    with file.open("r+b") as log:
        log.seek(-2, SEEK_END)
        byte = log.read(1)[0]
        log.seek(-2, SEEK_END)
        log.write(bytes([byte ^ 1]))
