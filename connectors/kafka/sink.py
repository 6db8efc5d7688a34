"""The hub's own producer: records into updates topics, by librdkafka.

It compresses and sends outside of Python's lock; kafka-python, which everything else uses, makes a
batch of 200,000 changes five per cent slower.
"""

import logging
from collections.abc import Mapping
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from connectors.kafka.options import (
    PRODUCER,
    REQUEST_BYTES_MAX,
    UNFLUSHED_BYTES_MAX,
    producer_options,
)
from connectors.kafka.topics import CONNECT_TIMEOUT_MS
from streaming.core.model.errors import PublishError

LOG = logging.getLogger("kafka.librdkafka")

_PRODUCER: Mapping[str, str | int | bool] = {
    **PRODUCER,
    "linger.ms": 0,  # a batch is queued as a whole, then flushed
    "message.max.bytes": REQUEST_BYTES_MAX,
    "message.timeout.ms": 120_000,
    "topic.metadata.propagation.max.ms": 10_000,
    "allow.auto.create.topics": False,  # a deleted topic must not reappear with other settings
    "socket.nagle.disable": True,
}


class UpdatesSink:
    """Sends records to updates topics, in order within a topic.

    Nothing is certain before `flush` returns. After the first failure the sink raises on every
    call: what it sent meanwhile may be in the topic, so a new sink publishes the batch again, with
    the same ids.
    """

    def __init__(
        self,
        bootstrap: str,
        options: Mapping[str, str],
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
    ) -> None:
        known = {"bootstrap.servers": bootstrap, **_PRODUCER, **producer_options(options)}
        try:
            self._producer = Producer(known, logger=LOG)
            self._producer.list_topics(timeout=connect_timeout_ms / 1000)
        except KafkaException as error:
            raise PublishError(
                f"no connection to Kafka at {bootstrap} ({error}): check that it runs and "
                "kafka.bootstrap_servers"
            ) from error
        self._unflushed_bytes = 0
        self._failure: PublishError | None = None

    def send(self, topic: str, key: bytes, value: bytes) -> None:
        """Queue one record; PublishError at once if it cannot be queued."""
        self._raise_failure()
        report = partial(self._delivered, topic, key)
        try:
            self._producer.produce(topic, value, key, 0, on_delivery=report)
        except (KafkaException, BufferError) as error:
            self._failed(topic, key, error)
        self._unflushed_bytes += len(value)
        if self._unflushed_bytes > UNFLUSHED_BYTES_MAX:
            self.flush()
        self._raise_failure()

    def flush(self) -> None:
        """Wait until all records are delivered; PublishError names the first that was not."""
        self._raise_failure()
        self._unflushed_bytes = 0
        self._producer.flush()
        self._raise_failure()

    def close(self) -> None:
        """Close the connection; records that were not flushed may be lost."""
        if self._failure is None:
            self._producer.flush(CONNECT_TIMEOUT_MS / 1000)
        self._producer.purge()

    def _delivered(self, topic: str, key: bytes, error: KafkaError | None, _: Message) -> None:
        """The delivery report of a record."""
        if error is not None and self._failure is None:
            self._failed(topic, key, error)

    def _failed(self, topic: str, key: bytes, error: object) -> None:
        self._failure = PublishError(
            f"record {key.decode(errors='replace')} was not delivered to {topic} ({error}): "
            "check the topic and the brokers; the next start publishes it again"
        )

    def _raise_failure(self) -> None:
        if self._failure:
            raise self._failure
