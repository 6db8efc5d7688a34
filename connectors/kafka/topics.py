"""Topics as the hub needs them: created or validated, their ids and their offsets."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.protocol.consumer import OffsetSpec

from connectors.kafka.options import principal_of
from connectors.kafka.source_errors import AdminConnection, source_errors
from streaming.core.access.rights import REMEDY, NeededRight, TopicRight, lacking_text
from streaming.core.intake.input_lost import GONE, HIDDEN, TopicFacts
from streaming.core.model.errors import SourceError
from streaming.core.records.retained import Retained

CONNECT_TIMEOUT_MS = 15_000
ENVELOPE_BYTES = 32_768
"""The most that the wire adds to a change: names, positions, Kafka's framing."""
_UNCOMPRESSED = "uncompressed"
DEFAULT_BYTES_MAX = 1_048_588
"""Kafka's default for the largest record of a topic."""


_ABSENT = {UnknownTopicOrPartitionError.errno: GONE, TopicAuthorizationFailedError.errno: HIDDEN}
"""What a broker says of a topic that it does not show."""


class Topics(AdminConnection):
    """An open connection that manages topics; each method raises SourceError."""

    def __init__(
        self,
        bootstrap: str,
        options: Mapping[str, str],
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
    ) -> None:
        super().__init__(bootstrap, options, bootstrap_timeout_ms=connect_timeout_ms)
        self.principal = principal_of(options)

    def ensure(
        self, names: Sequence[str], record_bytes: int, changes: Collection[str] = ()
    ) -> None:
        """Create the missing topics as the hub needs them and validate the others.

        `record_bytes` is the largest change; every topic must accept it with its envelope.
        `changes`: those of the topics that replicas write. They are uncompressed, so the broker
        refuses a record that is too large, whatever it was compressed to.
        SourceError names each unusable topic, what is wrong and what to do.
        """
        with self._client_errors():
            there = set(self._admin.list_topics())
            missing = [name for name in names if name not in there]
            if missing:
                self._create(missing, record_bytes, changes)
            found = [self._settings_of(name) for name in names]
        complaints = [text for topic in found for text in topic.complaints(record_bytes)]
        if complaints:
            raise SourceError("topics cannot be used:\n" + "\n".join(complaints))

    def complaints(self, name: str, record_bytes: int) -> list[str]:
        """What makes a topic that is there unusable, a sentence each."""
        with self._client_errors():
            return list(self._settings_of(name).complaints(record_bytes))

    def input_complaints(self, name: str) -> list[str]:
        """Why a record may be deleted unread, or be too large to be read, a sentence each."""
        with self._client_errors():
            found = self._settings_of(name)
        return [*found.retention_complaints(), *found.compression_complaints()]

    def retained(self, names: Collection[str]) -> dict[str, Retained]:
        """Topic -> how long and how much of its records it keeps."""
        with self._client_errors():
            found = [self._settings_of(name) for name in names]
        return {one.name: one.retained for one in found}

    def allowed(self, names: Sequence[str]) -> dict[str, frozenset[TopicRight]]:
        """Topic -> what this user may do with it: nothing where Kafka hides it.

        A topic that is not there is absent.
        """
        with self._client_errors():
            topics = self._admin.describe_topics(list(names)) if names else []
        found = dict[str, frozenset[TopicRight]]()
        for topic in topics:
            if topic["error_code"] == TopicAuthorizationFailedError.errno:
                found[topic["name"]] = frozenset()
            elif not topic["error_code"]:
                found[topic["name"]] = _rights_on(topic)
        return found

    def existing(self, names: Sequence[str]) -> list[str]:
        """Those of the topics that are there."""
        with self._client_errors():
            there = set(self._admin.list_topics())
        return [name for name in names if name in there]

    def beginning_with(self, prefix: str) -> list[str]:
        """The topics with this prefix that Kafka shows, by name."""
        with self._client_errors():
            return sorted(name for name in self._admin.list_topics() if name.startswith(prefix))

    def ids(self, names: Sequence[str]) -> dict[str, str]:
        """Topic -> its id: another id under the same name means that it was created again."""
        return {topic["name"]: str(topic["topic_id"]) for topic in self._described(names)}

    def first_offsets(self, names: Sequence[str]) -> dict[str, int]:
        """Topic -> the oldest offset that is retained."""
        return self._offsets(names, OffsetSpec.EARLIEST)

    def end_offsets(self, names: Sequence[str]) -> dict[str, int]:
        """Topic -> the offset that the next record will get."""
        return self._offsets(names, OffsetSpec.LATEST)

    def look(self, names: Sequence[str]) -> dict[str, TopicFacts]:
        """Topic -> how it is now: GONE if the broker knows no such topic, HIDDEN if it is mute."""
        if not names:
            return {}
        with self._client_errors():
            topics = self._admin.describe_topics(list(names))
            codes = {topic["error_code"] for topic in topics} - {0, *_ABSENT}
            if codes:
                raise for_code(min(codes))
            there = {topic["name"]: topic for topic in topics if not topic["error_code"]}
            firsts = self._offsets_of(there, OffsetSpec.EARLIEST)
            ends = self._offsets_of(there, OffsetSpec.LATEST)
        absent = {t["name"]: _ABSENT[t["error_code"]] for t in topics if t["error_code"]}
        return absent | {
            name: TopicFacts(
                str(one["topic_id"]),
                firsts[name],
                ends[name],
                is_readable=TopicRight.READ in _rights_on(one),
                is_writable=TopicRight.WRITE in _rights_on(one),
            )
            for name, one in there.items()
        }

    def _create(self, names: Sequence[str], record_bytes: int, changes: Collection[str]) -> None:
        configs = {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "retention.bytes": "-1",
            "message.timestamp.type": "CreateTime",
            "max.message.bytes": str(max(DEFAULT_BYTES_MAX, _needed_bytes(record_bytes))),
        }
        refused = []
        for name in names:
            made = configs | ({"compression.type": _UNCOMPRESSED} if name in changes else {})
            try:
                self._admin.create_topics({name: {"num_partitions": 1, "configs": made}})
            except TopicAlreadyExistsError:
                continue  # another client created it; it is validated below
            except TopicAuthorizationFailedError:
                refused.append(NeededRight(name, TopicRight.CREATE))
        if refused:
            raise SourceError(f"{lacking_text(refused, self.principal)}: {REMEDY}")
        self._admin.wait_for_topics(names)

    def _settings_of(self, name: str) -> "_TopicSettings":
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        configs = self._admin.describe_configs([resource], config_filter="all")["topic"][name]
        if not configs:
            refused = NeededRight(name, TopicRight.DESCRIBE_CONFIGS)
            raise SourceError(f"{lacking_text([refused], self.principal)}: {REMEDY}")
        return _TopicSettings(
            name=name,
            partitions=len(self._admin.describe_topics([name])[0]["partitions"]),
            cleanup=configs["cleanup.policy"]["value"],
            timestamps=configs["message.timestamp.type"]["value"],
            bytes_max=int(configs["max.message.bytes"]["value"]),
            compression=configs["compression.type"]["value"],
            retention_ms=int(configs["retention.ms"]["value"]),
            retention_bytes=int(configs["retention.bytes"]["value"]),
        )

    def _described(self, names: Sequence[str]) -> list[dict[str, Any]]:
        with self._client_errors():
            topics: list[dict[str, Any]] = self._admin.describe_topics(list(names))
        denied = TopicAuthorizationFailedError.errno
        hidden = [topic["name"] for topic in topics if topic["error_code"] == denied]
        if hidden:
            refused = [NeededRight(name, TopicRight.DESCRIBE) for name in hidden]
            raise SourceError(f"{lacking_text(refused, self.principal)}: {REMEDY}")
        for topic in topics:
            if topic["error_code"]:
                raise SourceError(
                    f"topic {topic['name']} is not there: create it again, or start the hub, "
                    "which creates what is missing"
                )
        return topics

    def _offsets(self, names: Sequence[str], which: OffsetSpec) -> dict[str, int]:
        there = [topic["name"] for topic in self._described(names)] if names else []
        with self._client_errors():
            return self._offsets_of(there, which)

    def _offsets_of(self, names: Iterable[str], which: OffsetSpec) -> dict[str, int]:
        wanted = {TopicPartition(name, 0): which for name in names}
        found = self._admin.list_partition_offsets(wanted) if wanted else {}
        return {partition.topic: answer.offset for partition, answer in found.items()}

    def _client_errors(self) -> AbstractContextManager[None]:
        return source_errors(self._bootstrap)


@dataclass(frozen=True, slots=True)
class _TopicSettings:
    name: str
    partitions: int
    cleanup: str
    timestamps: str
    bytes_max: int
    compression: str
    retention_ms: int
    retention_bytes: int

    @property
    def retained(self) -> Retained:
        """How long and how much of its records it keeps."""
        return Retained(
            self.retention_ms if self.retention_ms >= 0 else None,
            self.retention_bytes if self.retention_bytes >= 0 else None,
        )

    @property
    def _alter(self) -> str:
        return f"kafka-configs --alter --entity-type topics --entity-name {self.name} --add-config"

    def retention_complaints(self) -> Iterator[str]:
        """One sentence for each setting that deletes records, read or not."""
        if self.retention_ms >= 0:
            hours = self.retention_ms / 3_600_000
            yield (
                f"{self.name} deletes records after {hours:g} hours, also unread ones: "
                f"{self._alter} retention.ms=-1, or be sure that nobody is away for so long"
            )
        if self.retention_bytes >= 0:
            yield (
                f"{self.name} deletes records beyond {self.retention_bytes} bytes, also unread "
                f"ones: {self._alter} retention.bytes=-1"
            )

    def compression_complaints(self) -> Iterator[str]:
        """A sentence if the broker takes records that are much larger than they seem."""
        if self.compression != _UNCOMPRESSED:
            yield (
                f"{self.name} keeps records as they are compressed (compression.type="
                f"{self.compression}), so one of some kB may be too large to be read: {self._alter}"
                f" compression.type={_UNCOMPRESSED}"
            )

    def complaints(self, record_bytes: int) -> Iterator[str]:
        """One sentence for each setting that makes the topic unusable for replication."""
        if self.partitions != 1:
            yield (
                f"{self.name} has {self.partitions} partitions, so records lose their order: "
                "delete it and let the hub create it, with one"
            )
        if "compact" in self.cleanup.split(","):
            yield (
                f"{self.name} is compacted, so changes disappear: {self._alter} cleanup.policy="
                "delete, and check that nothing was compacted away"
            )
        if self.timestamps != "CreateTime":
            yield (
                f"{self.name} has {self.timestamps}, so a record's time is not that of its writer: "
                f"{self._alter} message.timestamp.type=CreateTime"
            )
        needed = _needed_bytes(record_bytes)
        if self.bytes_max < needed:
            yield (
                f"{self.name} accepts records of {self.bytes_max} bytes, {needed} are needed: "
                f"{self._alter} max.message.bytes={needed}, or lower limits.record_bytes"
            )


def _rights_on(topic: Mapping[str, Any]) -> frozenset[TopicRight]:
    """What a user may do with a topic that a broker described to it."""
    return frozenset(one for one in TopicRight if one.name in topic["authorized_operations"])


def _needed_bytes(record_bytes: int) -> int:
    return record_bytes + ENVELOPE_BYTES


def ensure_topics(
    bootstrap: str,
    options: Mapping[str, str],
    names: Sequence[str],
    record_bytes: int,
    changes: Collection[str] = (),
) -> None:
    """Topics.ensure on a connection of its own."""
    with Topics(bootstrap, options) as topics:
        topics.ensure(names, record_bytes, changes)


def end_offsets(bootstrap: str, options: Mapping[str, str], names: Sequence[str]) -> dict[str, int]:
    """Topics.end_offsets on a connection of its own."""
    with Topics(bootstrap, options) as topics:
        return topics.end_offsets(names)
