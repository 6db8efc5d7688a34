"""The hub of a story on the real pipeline and real tables, with its topics in memory: no JVM.

It resyncs nobody and does not materialize `rows`: Spark does both.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from checkpoints.commit.epochs import Plan
from checkpoints.commit.faults import FaultHook
from checkpoints.store import StateStore
from streaming.carriers.carrier import DriverCarrier
from streaming.config.config import Config
from streaming.config.history import ConfigHistory
from streaming.core.records.kept_bytes import KeptBytes, kept_bytes
from streaming.core.state.topology import Topology
from streaming.hub.batch.hub import Hub
from streaming.hub.batch.settings import BatchSettings, Effects
from streaming.hub.batch.source import limits_of
from streaming.hub.configured import settings_of
from streaming.hub.opening import Opening
from streaming.hub.topics.found_topics import FoundTopics
from streaming.stages.check import check_records
from streaming.stages.checked import NO_CHECKED
from tests.model.real_hub import RealHub

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("value", pa.binary()),
    ]
)


@dataclass(slots=True)
class TopicsInMemory:
    """Logs of records by topic, one partition each, as `TopicEnds` has them at a broker."""

    bootstrap: str = "memory:1"
    logs: dict[str, list[tuple[str, bytes, int]]] = field(default_factory=lambda: defaultdict(list))
    refusing: set[str] = field(default_factory=set)

    def send(
        self,
        topic: str,
        key: str,
        value: bytes,
        time_ms: int = 0,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> int:
        """Write one record; its offset."""
        assert not headers, "nobody here is fed by packets"
        self.logs[topic].append((key, value, time_ms))
        return len(self.logs[topic]) - 1

    def read(self, topic: str, offset: int = 0) -> list[tuple[str, bytes]]:
        """The (key, value) of every record in the topic, from this offset on."""
        return [(key, value) for key, value, _ in self.logs[topic][offset:]]

    def close(self) -> None:
        """They outlive the hub."""

    def records(self, named: Mapping[str, tuple[int, int]]) -> pa.Table:
        """The records [first, end) of these topics, as Spark's Kafka source gives them."""
        rows = [
            {
                "topic": topic,
                "offset": offset,
                "timestamp": _EPOCH + timedelta(milliseconds=self.logs[topic][offset][2]),
                "value": self.logs[topic][offset][1],
            }
            for topic, (first, end) in named.items()
            for offset in range(first, end)
        ]
        return pa.Table.from_pylist(rows, schema=_RECORDS)


class NoWorkBeside:
    """Where a hub would start work on Spark: none is ever done."""

    def start(self, *_: object) -> "Future[Any]":
        """Start nothing."""
        return Future()

    materialize = maintain = vacuum = find_purge = purge = start

    def close(self) -> None:
        """There is nothing to end."""


@dataclass(slots=True)
class LocalService:
    """One hub at a time on one state; see `Service`."""

    config: Config
    topics: TopicsInMemory
    reach: FaultHook
    updates: NoWorkBeside = field(default_factory=NoWorkBeside)
    resyncs: NoWorkBeside = field(default_factory=NoWorkBeside)
    settings: BatchSettings = field(init=False)
    hub: Hub = field(init=False)
    refused: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Open the state, and finish what a dead hub left."""
        self.settings = settings_of(self.config)
        ids = dict.fromkeys([*self.settings.topics, *self.settings.updates_topics], "id")
        found = FoundTopics(ids, dict.fromkeys(self.settings.topics, 0), {})
        source: Any = self
        opening = Opening(self.config, self.settings, ConfigHistory(), found, source, self._outlets)
        name, at_ms = f"local-{time.time_ns()}", time.time_ns() // 1_000_000
        self.hub = opening.open(StateStore(self.config.hub.state), name, self.reach, at_ms)

    def planned(self, plan: Plan, *_: object) -> DriverCarrier:
        """The records of a plan."""
        named = plan.named
        return DriverCarrier(self._check(self.topics.records(named)) if named else NO_CHECKED)

    def _check(self, records: pa.Table) -> pa.Table:
        settings, limits = self.settings, limits_of(self.config.limits, self.settings)
        return check_records(records, settings.all_topics, settings.topology.tables, limits)

    def _outlets(self, settings: BatchSettings) -> Effects:
        beside: Any = NoWorkBeside()
        return Effects(
            send=self._publish,
            flush=self._flush,
            originals=partial(self._originals, settings),
            revalidate=self._check,
            maintenance=beside,
            resyncs=beside,
        )

    def _publish(self, agreement: str, id_: str, value: bytes) -> None:
        topic = self.config.updates_topic(agreement)
        if topic in self.topics.refusing:
            self.refused |= {agreement}
        else:
            self.topics.send(topic, id_, value)

    def _flush(self) -> frozenset[str]:
        refused, self.refused = self.refused, frozenset()
        return refused

    def _originals(
        self, settings: BatchSettings, places: list[tuple[int, int]]
    ) -> dict[tuple[int, int], KeptBytes]:
        topics, allowed = settings.known_topics, settings.topology.record_bytes
        logs = {rid: self.topics.logs[topics[rid]] for rid, _ in places}
        return {(rid, n): kept_bytes(logs[rid][n][1], allowed) for rid, n in places}


class LocalHub(RealHub):
    """A hub on tables in a folder, and topics in memory."""

    def _make_topics(self, topics: Sequence[str]) -> None:
        """They are made when somebody writes to them."""

    def refuse_sent(self, rid: int, *, is_refused: bool) -> None:
        """Have the topic refuse records, or take them again."""
        topic = {self.config.updates_topic(self._name(rid))}
        known = self.topics.refusing
        self.topics.refusing = known | topic if is_refused else known - topic

    def restart(self, now_ms: int) -> None:
        """Open the state anew: an unfinished plan is finished, the last batch published again."""
        del now_ms
        self.kill = None
        self._sends()
        service: Any = LocalService(self.config, self.topics, self._at)
        self.service = service

    @property
    def topics(self) -> TopicsInMemory:
        """The topics, which outlive the hub."""
        ends: Any = self.ends
        found: TopicsInMemory = ends
        return found


def local_hubs(
    folder: Path, topics: TopicsInMemory | None = None, kind: type[LocalHub] = LocalHub
) -> Callable[[Topology], LocalHub]:
    """Makes the hub of a story in this folder, on these topics or on empty ones."""
    nothing: Any = None
    ends: Any = topics or TopicsInMemory()
    return lambda topology: kind(topology, nothing, ends, folder, "slackwater")
