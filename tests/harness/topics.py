"""Topics as a test touches them: append one record, read all records."""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from types import MappingProxyType, TracebackType
from typing import Self

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from connectors.kafka.options import client_options
from tests.harness.hub_process import TIMEOUT_S

ASSIGNED = 12
"""Of how many topics the consumer knows the leader: to learn one takes it a tenth of a second."""
AT_ONCE = 1_000_000
"""A poll gives all that was fetched: kafka-python 3.0.12 keeps the rest of a partition that is
paused meanwhile, and then neither gives it nor fetches it again."""

_OPEN: Mapping[str, str] = MappingProxyType({})
"""Options for a broker that asks nobody who it is."""


class TopicEnds:
    """A producer and a consumer for all topics of one broker."""

    def __init__(self, bootstrap: str, options: Mapping[str, str] = _OPEN) -> None:
        self.bootstrap = bootstrap
        self._common = common = {"bootstrap_servers": bootstrap, **client_options(options)}
        self._producer = KafkaProducer(acks="all", **common)
        self._consumer = KafkaConsumer(
            enable_auto_commit=False, fetch_max_wait_ms=1, max_poll_records=AT_ONCE, **common
        )
        self._assigned: list[TopicPartition] = []

    def send(
        self,
        topic: str,
        key: str,
        value: bytes | None,
        time_ms: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> int:
        """Write one record; its offset."""
        sent = self._producer.send(
            topic, key=key.encode(), value=value, timestamp_ms=time_ms, headers=[*headers]
        )
        return int(sent.get(TIMEOUT_S).offset)

    def read(self, topic: str, offset: int = 0) -> list[tuple[str, bytes]]:
        """The (key, value) of every record in the topic, from this offset on."""
        partition = TopicPartition(topic, 0)
        self._turn_to(partition)
        self._consumer.seek(partition, offset)
        end = self.end(topic)
        found: list[tuple[str, bytes]] = []
        deadline_s = time.monotonic() + TIMEOUT_S
        while (at := self._consumer.position(partition)) < end:
            assert time.monotonic() < deadline_s, f"{topic} gives nothing at {at} of {end}"
            records = self._consumer.poll(1000).get(partition, ())
            found += ((record.key.decode(), record.value) for record in records)
        return found

    def _turn_to(self, partition: TopicPartition) -> None:
        """Read this partition alone; the last ones are only paused."""
        others = [one for one in self._assigned if one != partition]
        if len(others) == len(self._assigned):
            others = others[1 - ASSIGNED :]
            self._assigned = [*others, partition]
            self._consumer.assign(self._assigned)
        self._consumer.pause(*others)
        self._consumer.resume(partition)

    def end(self, topic: str) -> int:
        """The offset that the topic's next record will get."""
        partition = TopicPartition(topic, 0)
        return int(self._consumer.end_offsets([partition])[partition])

    def cut(self, topic: str, offset: int) -> None:
        """Let retention delete the records below this offset."""
        with closing(KafkaAdminClient(**self._common)) as admin:
            admin.delete_records({TopicPartition(topic, 0): offset})

    def close(self) -> None:
        """End both connections."""
        self._producer.close(timeout=1)
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
