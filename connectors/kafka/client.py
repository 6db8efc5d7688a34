"""Kafka as the hub uses it: topics that keep order and content, offsets, and the options."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError, TopicAlreadyExistsError
from kafka.protocol.consumer import OffsetSpec

from streaming.core.model.errors import ConfigError, SourceError

CONNECT_TIMEOUT_MS = 15_000
ENVELOPE_BYTES = 32_768
"""What the wire adds to a change at most: names, positions, Kafka's own framing."""
KAFKAS_OWN_BYTES_MAX = 1_048_588
"""The largest record that a topic takes when nobody said otherwise."""
REQUEST_BYTES_MAX = 32 * 2**20
UNFLUSHED_BYTES_MAX = 64 * 2**20

SAME_NAME = {
    "client.dns.lookup",
    "client.id",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retry.backoff.ms",
    "sasl.kerberos.service.name",
    "sasl.mechanism",
    "security.protocol",
    "send.buffer.bytes",
}
_RENAMED = {
    "ssl.truststore.location": "ssl_cafile",
    "ssl.keystore.location": "ssl_certfile",
    "ssl.key.password": "ssl_password",
}
_JAVA_ONLY = {"ssl.truststore.type", "ssl.keystore.type", "ssl.endpoint.identification.algorithm"}


def source_options(bootstrap: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options of Spark's Kafka source that reach the cluster; `options` pass through."""
    return _for_spark(bootstrap, {**_SOURCE, **options})


def sink_options(bootstrap: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options of Spark's Kafka sink that reach the cluster; `options` pass through."""
    return _for_spark(bootstrap, {**_SINK, **options})


def _for_spark(bootstrap: str, options: Mapping[str, str]) -> dict[str, str]:
    passed = {f"kafka.{name}": value for name, value in options.items()}
    return {"kafka.bootstrap.servers": bootstrap, **passed}


_SOURCE = {"fetch.max.wait.ms": "1"}
"""At the end of a topic Spark's consumer has a fetch under way when it asks for the topic's range,
and a broker answers one request of a connection after the other: with the default each task of a
small batch stands still for half a second."""


_CLIENT = {"reconnect_backoff_max_ms": 1_000}
"""As Java clients do: with kafka-python's 30 s a broker that is back is not asked for as long."""


PRODUCER = {
    "acks": "all",
    "enable.idempotence": "true",  # a repeated request neither doubles nor overtakes
    "compression.type": "lz4",
    "batch.size": str(2**18),
}
"""How updates are sent, whether by the driver or by the executors."""

_SINK = {
    **PRODUCER,
    "max.request.size": str(REQUEST_BYTES_MAX),
    "buffer.memory": str(UNFLUSHED_BYTES_MAX),
}


def client_options(options: Mapping[str, str]) -> dict[str, Any]:
    """The same plain Kafka options as any client of kafka-python takes them.

    An option that only tunes Java clients is left to Spark. One that decides who may connect is
    never dropped: ConfigError if kafka-python cannot do it.
    """
    found: dict[str, Any] = dict(_CLIENT)
    for name, value in options.items():
        if name == "sasl.jaas.config":
            found |= _login(value)
        elif name in _JAVA_ONLY:
            found |= _java_only(name, value)
        elif name in _RENAMED:
            found[_RENAMED[name]] = value
        elif name in SAME_NAME:
            found[name.replace(".", "_")] = _typed(name, value)
        elif name.startswith(("security.", "sasl.", "ssl.")):
            raise ConfigError(
                f"kafka.options.{name}: the Python client has no such option; "
                "use PEM files (ssl.truststore.location, ssl.keystore.location, ssl.key.password) "
                "and sasl.jaas.config with username and password"
            )
    if "ssl_certfile" in found:  # a PEM store holds both
        found.setdefault("ssl_keyfile", found["ssl_certfile"])
    return found


def _login(jaas: str) -> dict[str, str]:
    """User name and password of a JAAS line."""
    pairs = dict(re.findall(r'\b(username|password)\s*=\s*"([^"]*)"', jaas))
    if len(pairs) < 2:
        raise ConfigError(
            'kafka.options.sasl.jaas.config: username="..." and password="..." are needed '
            "(mechanisms PLAIN and SCRAM)"
        )
    return {f"sasl_plain_{name}": value for name, value in pairs.items()}


def _java_only(name: str, value: str) -> dict[str, Any]:
    """What an option without a namesake means for kafka-python."""
    if name == "ssl.endpoint.identification.algorithm":
        return {"ssl_check_hostname": value.lower() == "https"}
    if value.upper() != "PEM":
        raise ConfigError(f"kafka.options.{name}: {value} is for Java alone, use PEM files")
    return {}


def _typed(name: str, value: str) -> str | int:
    """Names that end in a unit have whole numbers."""
    if not name.endswith((".ms", ".bytes")):
        return value
    try:
        return int(value)
    except ValueError as error:
        raise ConfigError(f"kafka.options.{name}: {value!r} is not a whole number") from error


class Topics:
    """An open connection for questions about topics; each method raises SourceError."""

    def __init__(
        self,
        bootstrap: str,
        options: Mapping[str, str],
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
    ) -> None:
        self._bootstrap = bootstrap
        with self._explained():
            self._admin = KafkaAdminClient(
                bootstrap_servers=bootstrap,
                bootstrap_timeout_ms=connect_timeout_ms,
                **client_options(options),
            )

    def ensure(self, names: Sequence[str], record_bytes: int) -> None:
        """Creates the missing topics as the hub needs them and checks the others.

        `record_bytes` is the largest change; every topic must take it in its envelope.
        SourceError names each topic that will not do, what is wrong with it, and what to do.
        """
        with self._explained():
            there = set(self._admin.list_topics())
            missing = [name for name in names if name not in there]
            if missing:
                self._create(missing, record_bytes)
            found = [self._shape(name) for name in names]
        complaints = [text for shape in found for text in shape.complaints(record_bytes)]
        if complaints:
            raise SourceError("topics cannot be used:\n" + "\n".join(complaints))

    def ids(self, names: Sequence[str]) -> dict[str, str]:
        """Topic -> its id: another one under the same name means that the topic was made anew."""
        return {topic["name"]: str(topic["topic_id"]) for topic in self._described(names)}

    def first_offsets(self, names: Sequence[str]) -> dict[str, int]:
        """Topic -> the oldest offset that is still there."""
        return self._offsets(names, OffsetSpec.EARLIEST)

    def end_offsets(self, names: Sequence[str]) -> dict[str, int]:
        """Topic -> the offset that the next record will get."""
        return self._offsets(names, OffsetSpec.LATEST)

    def close(self) -> None:
        """Ends the connection."""
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _create(self, names: Sequence[str], record_bytes: int) -> None:
        configs = {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "retention.bytes": "-1",
            "message.timestamp.type": "CreateTime",
            "max.message.bytes": str(max(KAFKAS_OWN_BYTES_MAX, _needed_bytes(record_bytes))),
        }
        for name in names:
            try:
                self._admin.create_topics({name: {"num_partitions": 1, "configs": configs}})
            except TopicAlreadyExistsError:
                continue  # somebody was faster; it is checked like any other
        self._admin.wait_for_topics(names)

    def _shape(self, name: str) -> "_Shape":
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        configs = self._admin.describe_configs([resource], config_filter="all")["topic"][name]
        if not configs:
            raise SourceError(
                f"the settings of topic {name} cannot be read: give the hub's user the right "
                "DescribeConfigs on it"
            )
        return _Shape(
            name=name,
            partitions=len(self._admin.describe_topics([name])[0]["partitions"]),
            cleanup=configs["cleanup.policy"]["value"],
            timestamps=configs["message.timestamp.type"]["value"],
            bytes_max=int(configs["max.message.bytes"]["value"]),
        )

    def _described(self, names: Sequence[str]) -> list[dict[str, Any]]:
        with self._explained():
            topics: list[dict[str, Any]] = self._admin.describe_topics(list(names))
        for topic in topics:
            if topic["error_code"]:
                raise SourceError(
                    f"topic {topic['name']} is not there: create it again, or start the hub, "
                    "which creates what is missing"
                )
        return topics

    def _offsets(self, names: Sequence[str], which: OffsetSpec) -> dict[str, int]:
        wanted = {TopicPartition(topic["name"], 0): which for topic in self._described(names)}
        with self._explained():
            found = self._admin.list_partition_offsets(wanted)
        return {partition.topic: answer.offset for partition, answer in found.items()}

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns what the client raises into a SourceError that says where and what to do."""
        try:
            yield
        except KafkaError as error:
            raise SourceError(
                f"Kafka at {self._bootstrap} did not answer as it should ({error}): check that "
                "it runs, kafka.bootstrap_servers, and the rights of the hub's user"
            ) from error


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a topic is like, as far as it matters."""

    name: str
    partitions: int
    cleanup: str
    timestamps: str
    bytes_max: int

    def complaints(self, record_bytes: int) -> Iterator[str]:
        """One sentence for each thing that makes the topic useless for replication."""
        alter = f"kafka-configs --alter --entity-type topics --entity-name {self.name} --add-config"
        if self.partitions != 1:
            yield (
                f"{self.name} has {self.partitions} partitions, so records lose their order: "
                "delete it and let the hub create it, with one"
            )
        if "compact" in self.cleanup.split(","):
            yield (
                f"{self.name} is compacted, so changes disappear: {alter} cleanup.policy=delete, "
                "and see to it that nothing was compacted away"
            )
        if self.timestamps != "CreateTime":
            yield (
                f"{self.name} has {self.timestamps}, so a record's time is not its writer's: "
                f"{alter} message.timestamp.type=CreateTime"
            )
        needed = _needed_bytes(record_bytes)
        if self.bytes_max < needed:
            yield (
                f"{self.name} takes records of {self.bytes_max} bytes, {needed} are needed: "
                f"{alter} max.message.bytes={needed}, or lower limits.record_bytes"
            )


def _needed_bytes(record_bytes: int) -> int:
    return record_bytes + ENVELOPE_BYTES


def ensure_topics(
    bootstrap: str, options: Mapping[str, str], names: Sequence[str], record_bytes: int
) -> None:
    """Topics.ensure on a connection of its own."""
    with Topics(bootstrap, options) as topics:
        topics.ensure(names, record_bytes)


def topic_ids(bootstrap: str, options: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """Topics.ids on a connection of its own."""
    with Topics(bootstrap, options) as topics:
        return topics.ids(names)


def end_offsets(bootstrap: str, options: Mapping[str, str], names: Sequence[str]) -> dict[str, int]:
    """Topics.end_offsets on a connection of its own."""
    with Topics(bootstrap, options) as topics:
        return topics.end_offsets(names)
