"""A replica's two topics, with retries while the broker is unreachable."""

import logging
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError

from connectors.agent.access import REQUEST_MS, KafkaAccess
from connectors.agent.outage import Outage
from connectors.kafka.options import REQUEST_BYTES_MAX

NO_TIMEOUT_MS = 2**31 - 1
ACK_WARNING_S = 3.0
"""How long a broker may take to acknowledge before the log reports that it is unreachable."""
CATCH_UP_MS = 500
"""How long a record of a topic that is read to its end is waited for."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TopicReader:
    """Reads a topic from an offset on, by a consumer that is opened anew when it fails.

    It is also when Kafka's options were changed: one whose password is refused says nothing.
    """

    outage: Outage
    topic: str
    offset: int
    consumer: KafkaConsumer | None = None
    options_number: int = 0

    def poll(self, timeout_ms: int) -> list[Any]:
        """The next records; empty if none arrives in that time, or Kafka does not answer."""
        partition = TopicPartition(self.topic, 0)
        try:
            found: list[Any] = self.open().poll(timeout_ms=timeout_ms).get(partition, [])
        except KafkaError as error:
            self.failed(error)
            return []
        if found:
            self.outage.found(self.topic)
            self.offset = found[-1].offset + 1
        return found

    def end(self) -> int:
        """The offset behind the last record that is there now; it waits for the topic."""
        partition = TopicPartition(self.topic, 0)
        while True:
            try:
                consumer = self.open()
                if not consumer.partitions_for_topic(self.topic):
                    self.close()
                    self.outage.await_topic(self.topic)
                    continue
                found = consumer.end_offsets([partition], timeout_ms=REQUEST_MS)[partition]
            except KafkaError as error:
                self.failed(error)
            else:
                self.outage.finish()
                self.outage.found(self.topic)
                return int(found)

    def up_to(self, end: int) -> Iterator[tuple[int, bytes]]:
        """The records before this offset as (offset, value); it waits for each of them."""
        quiet_since_s = time.monotonic()
        while self._position() < end:
            found = self.poll(CATCH_UP_MS)
            if found:
                self.outage.finish()
                quiet_since_s = time.monotonic()
            elif self.outage.stop.is_set() or time.monotonic() - quiet_since_s > ACK_WARNING_S:
                self.outage.begin(f"topic {self.topic}: no record for {ACK_WARNING_S} s")
            for record in found:
                if record.value is not None and record.offset < end:
                    yield record.offset, record.value

    def move(self, offset: int) -> None:
        """Read on from another offset."""
        self.offset = offset
        if self.consumer is not None:
            self.consumer.seek(TopicPartition(self.topic, 0), offset)

    def open(self) -> KafkaConsumer:
        """The consumer, opened anew if Kafka's options were changed; KafkaError if it cannot be."""
        access = self.outage.access
        if self.consumer is not None and self.options_number != access.options.number:
            self.close()
        if self.consumer is None:
            self.options_number = access.options.number
            self.consumer = _consumer(access, TopicPartition(self.topic, 0), self.offset)
        return self.consumer

    def failed(self, error: KafkaError) -> None:
        """Record that the consumer failed and pause; StopRequested if the agent has to stop."""
        self.close()
        self.outage.pause(f"topic {self.topic}: {error!r}")

    def close(self) -> None:
        """Close the connection."""
        if self.consumer is not None:
            self.consumer.close(autocommit=False)
            self.consumer = None

    def _position(self) -> int:
        """The next offset, also where the last records are none that a reader is given."""
        try:
            found = self.open().position(TopicPartition(self.topic, 0))
        except KafkaError as error:
            self.failed(error)
            return self.offset
        return int(found)


def _consumer(access: KafkaAccess, partition: TopicPartition, offset: int) -> KafkaConsumer:
    consumer = KafkaConsumer(
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=REQUEST_BYTES_MAX // 8,
        **access.client(),
    )
    consumer.assign([partition])
    consumer.seek(partition, offset)
    return consumer


@dataclass(slots=True)
class ChangesTopic:
    """The replica's own topic: read to its end at the start, then only written."""

    outage: Outage
    producer: KafkaProducer | None = None
    options_number: int = 0

    def read(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Every record from this offset to the end as it is now, as (offset, value)."""
        with closing(self._reader(offset)) as reader:
            end = reader.end()
            if offset > end:
                log.warning(
                    "topic %s is shorter than before: it is read from its beginning", reader.topic
                )
                reader.move(0)
            yield from reader.up_to(end)

    def last(self) -> bytes | None:
        """The last record that is there now; None: there is none."""
        with closing(self._reader(0)) as reader:
            end = reader.end()
            reader.move(max(0, end - 1))
            return next((value for _, value in reader.up_to(end)), None)

    def _reader(self, offset: int) -> TopicReader:
        return TopicReader(self.outage, self.outage.access.settings.changes_topic, offset)

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
            producer, settings = self._open(), self.outage.access.settings
            address = {"topic": settings.changes_topic, "key": settings.replica.encode()}
            for value in values:
                sent.append(producer.send(partition=0, value=value, **address))
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

    def _wait(self, future: Any) -> None:  # noqa: ANN401 kafka-python has no types
        """Wait for an acknowledgement as long as it takes; KafkaError if it fails.

        A producer that connects again and again with a certificate that has expired does not fail.
        """
        started_s = time.monotonic()
        while True:
            try:
                future.get(timeout=0.5)
            except KafkaTimeoutError:
                if future.is_done:
                    raise
                if self.outage.stop.is_set() or time.monotonic() - started_s > ACK_WARNING_S:
                    self.outage.begin(f"no acknowledgement for {ACK_WARNING_S} s")
                if self._is_outdated():
                    raise KafkaConnectionError("Kafka's options were changed") from None
            else:
                return

    def _open(self) -> KafkaProducer:
        if self.producer is not None and self._is_outdated():
            self.close()
        if self.producer is None:
            self.options_number = self.outage.access.options.number
            self.producer = KafkaProducer(
                acks="all",
                enable_idempotence=True,  # a repeated request neither doubles nor overtakes
                compression_type="lz4",
                delivery_timeout_ms=NO_TIMEOUT_MS,
                max_block_ms=REQUEST_MS,
                max_request_size=REQUEST_BYTES_MAX,
                **self.outage.access.client(),
            )
        return self.producer

    def _is_outdated(self) -> bool:
        return self.options_number != self.outage.access.options.number


class UpdatesTopic:
    """The topic in which the hub publishes to this replica, read from a stored offset on."""

    def __init__(self, topic: str, offset: int, outage: Outage) -> None:
        self._reader, self._outage = TopicReader(outage, topic, offset), outage

    def poll(self, timeout_ms: int) -> list[tuple[int, bytes]]:
        """The next records as (offset, value); empty if none arrives in that time."""
        reader = self._reader
        if reader.consumer is None:
            self._look_for_topic()
        return [(one.offset, one.value) for one in reader.poll(timeout_ms) if one.value is not None]

    def _look_for_topic(self) -> None:
        try:
            is_there = self._reader.open().partitions_for_topic(self._reader.topic)
        except KafkaError as error:
            self._reader.failed(error)
            return
        if not is_there:
            self._outage.miss(self._reader.topic)

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()
