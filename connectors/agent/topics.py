"""A replica's two topics, with retries while the broker is unreachable."""

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import InvalidTimestampError, KafkaError, KafkaTimeoutError

from connectors.agent.settings import AgentSettings
from connectors.kafka.options import REQUEST_BYTES_MAX, client_options

NO_TIMEOUT_MS = 2**31 - 1
REQUEST_MS = 5_000
"""How long one request to a broker may take before it counts as unreachable."""
ACK_WARNING_S = 3.0
"""How long a broker may take to acknowledge before the log reports that it is unreachable."""
RETRY_PAUSE_S = (0.1, 5.0)
"""The first and the longest pause between two attempts."""
MISSING_PAUSE_S = 1.0
"""The pause between two looks for a topic that the hub has not created yet."""

log = logging.getLogger(__name__)


class StopRequested(Exception):  # noqa: N818 no error
    """The agent has to stop while it waits for the broker."""


REFUSED_TIME = (
    "Kafka refuses what this agent publishes, because this machine's clock is too far from Kafka's:"
    " correct it; the agent retries, and loses nothing"
)


@dataclass(slots=True)
class Outage:
    """Logs once when the broker or a topic is missed, and once when it is there again."""

    stop: threading.Event
    since_s: float | None = None
    missing: str | None = None
    pause_s: float = RETRY_PAUSE_S[0]

    def begin(self, reason: object) -> None:
        """Record that the broker does not answer; StopRequested if the agent has to stop."""
        if self.stop.is_set():
            raise StopRequested
        if self.since_s is None:
            self.since_s = time.monotonic()
            if isinstance(reason, InvalidTimestampError):
                log.warning("%s", REFUSED_TIME)
            else:
                said = repr(reason) if isinstance(reason, KafkaError) else reason
                log.warning("Kafka does not answer, the agent retries: %s", said)

    def pause(self, reason: object) -> None:
        """Record it and wait, longer each time up to a bound; StopRequested likewise."""
        self.begin(reason)
        self.stop.wait(self.pause_s)
        self.pause_s = min(self.pause_s * 2, RETRY_PAUSE_S[1])

    def miss(self, topic: str) -> None:
        """Record that the broker answers and has no such topic."""
        if self.missing != topic:
            self.finish()
            self.missing = topic
            log.warning("waiting for topic %s: (re)start the hub, which creates it", topic)

    def await_topic(self, topic: str) -> None:
        """Record it and wait a while; StopRequested if the agent has to stop."""
        self.miss(topic)
        if self.stop.wait(MISSING_PAUSE_S):
            raise StopRequested

    def found(self, topic: str) -> None:
        """Record that the topic is there."""
        if self.missing == topic:
            log.info("topic %s is there", topic)
            self.missing = None

    def finish(self) -> None:
        """Record that the broker answered."""
        if self.since_s is not None:
            log.warning("Kafka answers again after %.1f s", time.monotonic() - self.since_s)
        self.since_s, self.pause_s = None, RETRY_PAUSE_S[0]


def _common(settings: AgentSettings) -> dict[str, Any]:
    return {
        "bootstrap_servers": settings.bootstrap_servers,
        "bootstrap_timeout_ms": REQUEST_MS,
        "allow_auto_create_topics": False,
        "metrics_enabled": False,
        **client_options(settings.options),
    }


def _consumer(settings: AgentSettings, partition: TopicPartition, offset: int) -> KafkaConsumer:
    consumer = KafkaConsumer(
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=REQUEST_BYTES_MAX // 8,
        **_common(settings),
    )
    consumer.assign([partition])
    consumer.seek(partition, offset)
    return consumer


@dataclass(slots=True)
class ChangesTopic:
    """The replica's own topic: read to its end at the start, then only written."""

    settings: AgentSettings
    outage: Outage
    producer: KafkaProducer | None = None

    def read(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Every record from this offset to the end as it is now, as (offset, value)."""
        partition = TopicPartition(self.settings.changes_topic, 0)
        consumer, end = _reader(self.settings, partition, offset, self.outage)
        if offset > end:
            log.warning(
                "topic %s is shorter than before: it is read from its beginning", partition.topic
            )
            consumer.seek(partition, 0)
        try:
            yield from _up_to(consumer, partition, end, self.outage)
        finally:
            consumer.close(autocommit=False)

    def last(self) -> bytes | None:
        """The last record that is there now; None: there is none."""
        partition = TopicPartition(self.settings.changes_topic, 0)
        consumer, end = _reader(self.settings, partition, 0, self.outage)
        try:
            consumer.seek(partition, max(0, end - 1))
            return next((value for _, value in _up_to(consumer, partition, end, self.outage)), None)
        finally:
            consumer.close(autocommit=False)

    @property
    def is_connected(self) -> bool:
        """Return whether the broker answered when it was last needed."""
        return self.producer is not None and self.outage.since_s is None

    def publish(self, values: list[bytes]) -> None:
        """Write records in order and wait until all are in the topic, or raise StopRequested.

        After a failure the rest is sent again from the first that is not acknowledged. A record
        may therefore be in the topic twice, which the hub detects; never in another order.
        """
        left = values
        while left:
            left = left[self._send(left) :]

    def close(self) -> None:
        """Close the connection; unacknowledged records may or may not be written."""
        producer, self.producer = self.producer, None
        if producer is None:
            return
        try:
            producer.close(timeout=1)
        except KafkaTimeoutError:  # it does not end by itself, and there is no public method
            producer._sender.force_close()  # noqa: SLF001
            producer.close(timeout=1)

    def _send(self, values: list[bytes]) -> int:
        """How many of the records, from the first on, are acknowledged."""
        done, sent = 0, list[Any]()
        failure: KafkaError | None = None
        try:
            for value in values:
                sent.append(self._open().send(partition=0, value=value, **self._address()))
        except KafkaError as error:
            failure = error
        try:
            for future in sent:
                self._wait(future)
                done += 1
        except KafkaError as error:
            self.close()
            failure = error
        if failure is not None:
            self.outage.pause(failure)
        else:
            self.outage.finish()
        return done

    def _address(self) -> dict[str, Any]:
        return {"topic": self.settings.changes_topic, "key": self.settings.replica.encode()}

    def _wait(self, future: Any) -> None:  # noqa: ANN401 kafka-python has no types
        """Wait for an acknowledgement as long as it takes; KafkaError if it fails."""
        started_s = time.monotonic()
        while True:
            try:
                future.get(timeout=0.5)
            except KafkaTimeoutError:
                if future.is_done:
                    raise
                if self.outage.stop.is_set() or time.monotonic() - started_s > ACK_WARNING_S:
                    self.outage.begin(f"no acknowledgement for {ACK_WARNING_S} s")
            else:
                return

    def _open(self) -> KafkaProducer:
        if self.producer is None:
            self.producer = KafkaProducer(
                acks="all",
                enable_idempotence=True,  # a repeated request neither doubles nor overtakes
                compression_type="lz4",
                delivery_timeout_ms=NO_TIMEOUT_MS,
                max_block_ms=REQUEST_MS,
                max_request_size=REQUEST_BYTES_MAX,
                **_common(self.settings),
            )
        return self.producer


@dataclass(slots=True)
class UpdatesTopic:
    """The topic in which the hub publishes to this replica, read from a stored offset on."""

    settings: AgentSettings
    topic: str
    offset: int
    outage: Outage
    consumer: KafkaConsumer | None = field(default=None)

    def poll(self, timeout_ms: int) -> list[tuple[int, bytes]]:
        """The next records as (offset, value); empty if none arrives in that time."""
        partition = TopicPartition(self.topic, 0)
        try:
            if self.consumer is None:
                self.consumer = _consumer(self.settings, partition, self.offset)
                if not self.consumer.partitions_for_topic(self.topic):
                    self.outage.miss(self.topic)
            found = self.consumer.poll(timeout_ms=timeout_ms).get(partition, [])
        except KafkaError as error:
            self.close()
            self.outage.pause(f"topic {self.topic}: {error!r}")
            return []
        if found:
            self.outage.found(self.topic)
            self.offset = found[-1].offset + 1
        return [(record.offset, record.value) for record in found if record.value is not None]

    def end(self) -> int:
        """The offset behind the last record that is there now."""
        consumer, end = _reader(self.settings, TopicPartition(self.topic, 0), 0, self.outage)
        consumer.close(autocommit=False)
        return end

    def close(self) -> None:
        """Close the connection."""
        if self.consumer is not None:
            self.consumer.close(autocommit=False)
            self.consumer = None


def _reader(
    settings: AgentSettings, partition: TopicPartition, offset: int, outage: Outage
) -> tuple[KafkaConsumer, int]:
    """A consumer at this offset, and the end of the topic."""
    while True:
        consumer = None
        try:
            consumer = _consumer(settings, partition, offset)
            if not consumer.partitions_for_topic(partition.topic):
                consumer.close(autocommit=False)
                outage.await_topic(partition.topic)
                continue
            end = consumer.end_offsets([partition], timeout_ms=REQUEST_MS)[partition]
        except KafkaError as error:
            if consumer is not None:
                consumer.close(autocommit=False)
            outage.pause(f"topic {partition.topic}: {error!r}")
        else:
            outage.finish()
            outage.found(partition.topic)
            return consumer, end


def _up_to(
    consumer: KafkaConsumer, partition: TopicPartition, end: int, outage: Outage
) -> Iterator[tuple[int, bytes]]:
    quiet_since_s = time.monotonic()
    while consumer.position(partition) < end:
        found = consumer.poll(timeout_ms=500).get(partition, [])
        if found:
            outage.finish()
            quiet_since_s = time.monotonic()
        elif outage.stop.is_set() or time.monotonic() - quiet_since_s > ACK_WARNING_S:
            outage.begin(f"topic {partition.topic}: no record for {ACK_WARNING_S} s")
        for record in found:
            if record.value is not None and record.offset < end:
                yield record.offset, record.value
