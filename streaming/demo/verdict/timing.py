"""The times that a demonstration notes for its latencies: its topics end with its broker."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from connectors import wire
from connectors.kafka.looking import timed_records
from streaming.config.config import Config
from streaming.core.records.record import Update


@dataclass(frozen=True, slots=True)
class DemoTiming:
    """Since when writes are timed, and replica -> hub epoch -> when its batch was published.

    What was written before `measured_since_ms` warmed up the hub: it is verified and not timed.
    """

    measured_since_ms: int = 0
    published_ms: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


def read_timing(config: Config, measured_since_ms: int) -> DemoTiming:
    """The timing of a demonstration whose broker still runs."""
    return DemoTiming(
        measured_since_ms, {a.consumer: _published_ms(config, a.name) for a in config.agreements}
    )


def _published_ms(config: Config, agreement: str) -> dict[int, int]:
    """Hub epoch -> the time of the last chunk of its batch."""
    topic, kafka = config.updates_topic(agreement), config.kafka
    found = dict[int, int]()
    for at_ms, value in timed_records(kafka.bootstrap_servers, kafka.options, topic):
        if isinstance(answer := wire.decode_answer(value), Update):
            found[answer.hub_epoch] = at_ms
    return found


def store_timing(timing: DemoTiming, file: Path) -> None:
    """Write the timing beside the databases."""
    document = {
        "measured_since_ms": timing.measured_since_ms,
        "published_ms": {name: list(one.items()) for name, one in timing.published_ms.items()},
    }
    file.write_text(json.dumps(document), encoding="utf-8")


def stored_timing(file: Path) -> DemoTiming:
    """The timing that was written; that of an unfinished demonstration is empty."""
    if not file.exists():
        return DemoTiming()
    document = json.loads(file.read_text(encoding="utf-8"))
    published_ms = {name: dict(pairs) for name, pairs in document["published_ms"].items()}
    return DemoTiming(document["measured_since_ms"], published_ms)
