"""The hub's own producer: records into updates topics, and what packets bring, by librdkafka.

It compresses and sends outside of Python's lock; kafka-python, which everything else uses, makes a
batch of 200,000 changes five per cent slower.
"""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from connectors.kafka.client_errors import CLIENT_LOG, LoggedFault, fault_of
from connectors.kafka.options import (
    PRODUCER,
    REQUEST_BYTES_MAX,
    UNFLUSHED_BYTES_MAX,
    producer_options,
)
from connectors.kafka.topics import CONNECT_TIMEOUT_MS
from streaming.core.model.errors import PublishError

LOG = logging.getLogger(__name__)
CLIENT = logging.getLogger(f"{CLIENT_LOG}.librdkafka")

_PRODUCER: Mapping[str, str | int | bool] = {
    **PRODUCER,
    "linger.ms": 0,  # a batch is queued as a whole, then flushed
    "message.max.bytes": REQUEST_BYTES_MAX,
    "message.timeout.ms": 60_000,  # then the hub waits for its broker
    "topic.metadata.propagation.max.ms": 10_000,
    "allow.auto.create.topics": False,  # a deleted topic must not reappear with other settings
    "socket.nagle.disable": True,
}

_OF_TOPIC = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.POLICY_VIOLATION,
    KafkaError.INVALID_RECORD,
}
"""What a broker says of one topic, and would say again."""


class UpdatesSink:
    """Sends records to updates topics, in order within a topic.

    Nothing is certain before `flush` returns. After the first failure the sink raises on every
    call: what it sent meanwhile may be in the topic, so a new sink publishes the batch again, with
    the same ids. A topic that refuses a record for its settings or rights is no failure: until the
    next flush nothing more is sent there, so that nothing follows a hole.
    """

    def __init__(
        self,
        bootstrap: str,
        options: Mapping[str, str],
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
    ) -> None:
        known = {"bootstrap.servers": bootstrap, **_PRODUCER, **producer_options(options)}
        self._producer = _connected(known, bootstrap, connect_timeout_ms / 1000)
        self._unflushed_bytes = 0
        self._failure: PublishError | None = None
        self._refusing: set[str] = set()
        self._refused_before: set[str] = set()

    def send(
        self, topic: str, key: bytes, value: bytes, headers: Sequence[tuple[str, bytes]] = ()
    ) -> None:
        """Queue one record; PublishError at once if it cannot be queued."""
        self._raise_failure()
        if topic in self._refusing:
            return
        report = partial(self._delivered, topic, key)
        try:
            self._look_again(topic)
            self._producer.produce(
                topic, value, key, 0, on_delivery=report, headers=[*headers] or None
            )
        except KafkaException as error:
            self._undelivered(topic, key, error.args[0])
        except BufferError as error:
            self._failed(topic, key, error)
        self._unflushed_bytes += len(value)
        if self._unflushed_bytes > UNFLUSHED_BYTES_MAX:
            self._flush()
        self._raise_failure()

    def flush(self) -> set[str]:
        """Wait until all records are delivered; the topics that refused some since the last flush.

        PublishError names the first that was not delivered for another reason.
        """
        self._flush()
        refusing, self._refusing = self._refusing, set()
        return refusing

    def _flush(self) -> None:
        self._raise_failure()
        self._unflushed_bytes = 0
        try:
            self._producer.flush()
        except KafkaException as error:
            self._failure = PublishError(
                f"updates cannot be sent ({fault_of(str(error)) or 'Kafka'}: {error}): the next"
                " start publishes them again"
            )
            raise self._failure from error
        self._raise_failure()

    def close(self) -> None:
        """Close the connection; records that were not flushed may be lost."""
        if self._failure is None:
            self._producer.flush(CONNECT_TIMEOUT_MS / 1000)
        self._producer.purge()

    def _delivered(self, topic: str, key: bytes, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._undelivered(topic, key, error)

    def _look_again(self, topic: str) -> None:
        """Have the client forget that it may not write a topic, which it would for minutes."""
        if topic in self._refused_before:
            self._refused_before.remove(topic)
            self._producer.list_topics(topic, timeout=CONNECT_TIMEOUT_MS / 1000)

    def _undelivered(self, topic: str, key: bytes, error: KafkaError) -> None:
        if error.code() not in _OF_TOPIC:
            self._failed(topic, key, error)
        elif topic not in self._refusing:
            self._refusing.add(topic)
            self._refused_before.add(topic)
            LOG.warning(
                "%s refuses record %s (%s): check its settings and the hub's rights on it; its"
                " consumer counts as away",
                topic,
                key.decode(errors="replace"),
                error,
            )

    def _failed(self, topic: str, key: bytes, error: object) -> None:
        self._failure = self._failure or PublishError(
            f"record {key.decode(errors='replace')} was not delivered to {topic} ({error}): "
            "check the topic and the brokers; the next start publishes it again"
        )

    def _raise_failure(self) -> None:
        if self._failure:
            raise self._failure


def _connected(known: dict[str, Any], bootstrap: str, timeout_s: float) -> Producer:
    """A producer that has reached its broker; PublishError says why it has not."""
    producer: Producer | None = None
    with LoggedFault() as logged:
        try:
            producer = Producer(known, logger=CLIENT)
            producer.list_topics(timeout=timeout_s)
        except KafkaException as error:
            if producer is not None:
                producer.poll(0)  # only then it writes what it has to say into its log
            raise PublishError(
                f"no connection to Kafka at {bootstrap} ({logged.explained(error)}): check that it"
                " runs and kafka.bootstrap_servers"
            ) from error
    return producer
