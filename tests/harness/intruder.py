"""A user of Kafka who tries everything, with requests of its own where a client would not ask."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Self

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import (
    ACL,
    AbortTransactionSpec,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    UserScramCredentialUpsertion,
)
from kafka.errors import KafkaError, TopicAlreadyExistsError, UnknownTopicOrPartitionError, for_code
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.producer import ProduceRequest
from kafka.record.memory_records import MemoryRecordsBuilder

from connectors.kafka.options import client_options
from streaming.core.access.rights import NeededRight, TopicRight

EVERY_RULE = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)
DONE, REFUSED, HIDDEN = "done", "refused", "hidden"
"""How a request is answered; a topic is hidden from who may do nothing with it."""
_TIMEOUT_MS = 10_000
_NAMED_TOPICS = 12
"""The last version of both requests that names topics by their name."""


class Intruder:
    """What a user is answered; as a context manager."""

    def __init__(self, bootstrap: str, options: Mapping[str, str]) -> None:
        self._client = {"bootstrap_servers": bootstrap, **client_options(options)}
        self._admin = KafkaAdminClient(**self._client)

    def may(self, topics: Iterable[str]) -> set[NeededRight]:
        """Which of the rights on these topics it has, each tried."""
        asked: dict[TopicRight, Callable[[str], object]] = {
            TopicRight.READ: self._fetch,
            TopicRight.WRITE: self._produce,
            TopicRight.CREATE: self._create,
            TopicRight.DESCRIBE: self._look,
            TopicRight.DESCRIBE_CONFIGS: self._describe_configs,
        }
        wanted = [(NeededRight(topic, right), asked[right]) for topic in topics for right in asked]
        answers = {one: _answer(partial(ask, one.topic)) for one, ask in wanted}
        assert set(answers.values()) <= {DONE, REFUSED}, answers
        return {one for one, answer in answers.items() if answer == DONE}

    def answers(self, topic: str) -> dict[str, str]:
        """What nobody but an administrator may do -> how Kafka answers."""
        return {what: _answer(ask) for what, ask in self._forbidden(topic).items()}

    def seen(self) -> tuple[set[str], int]:
        """The topics and the number of groups and transactions that it is told of."""
        others = [self._admin.list_groups(), *self._admin.list_transactions().values()]
        return set(self._admin.list_topics()), sum(map(len, others))

    def rules(self) -> list[tuple[str, str, str, str, str]]:
        """Every rule of the broker: who, what, kind of resource, its name, and whether a prefix."""
        return [
            (
                one.principal,
                one.operation.name,
                one.resource_pattern.resource_type.name,
                one.resource_pattern.resource_name,
                one.resource_pattern.pattern_type.name,
            )
            for one in self._admin.describe_acls(EVERY_RULE)[0]
            if one.permission_type is ACLPermissionType.ALLOW
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._admin.close()

    def _forbidden(self, topic: str) -> dict[str, Callable[[], object]]:
        admin, place = self._admin, TopicPartition(topic, 0)
        rule = ACL(
            "User:*",
            "*",
            ACLOperation.ALL,
            ACLPermissionType.ALLOW,
            ResourcePattern(ResourceType.TOPIC, topic),
        )
        login = UserScramCredentialUpsertion("hub", "SCRAM-SHA-512", "taken over")
        return {
            "create a topic": lambda: admin.create_topics({"x": {"num_partitions": 1}}),
            "delete a topic": lambda: admin.delete_topics([topic]),
            "add a partition": lambda: admin.create_partitions({topic: 2}),
            "delete records": lambda: admin.delete_records({place: -1}),
            "alter a topic": lambda: self._alter(ConfigResourceType.TOPIC, topic, "retention.ms"),
            "alter the broker": lambda: self._alter(
                ConfigResourceType.BROKER, "1", "log.retention.ms"
            ),
            "add a rule": lambda: _raise_any(admin.create_acls([rule])["failed"]),
            "read the rules": lambda: admin.describe_acls(EVERY_RULE),
            "delete rules": lambda: _raise_any(one[2] for one in admin.delete_acls([EVERY_RULE])),
            "change a password": lambda: _raise_texts(
                admin.alter_user_scram_credentials([login]).values()
            ),
            "elect a leader": lambda: admin.elect_leaders(0, [place]),
            "move a partition": lambda: admin.alter_partition_reassignments({place: [1]}),
            "see the controllers": admin.describe_metadata_quorum,
            "end a transaction": lambda: admin.abort_transaction(AbortTransactionSpec(place, 1, 0)),
            "begin a transaction": self._begin_transaction,
            "join a group": lambda: self._join(topic),
            "see a group": lambda: admin.describe_groups(["g"]),
            "delete a group": lambda: admin.delete_groups(["g"]),
            "move a group": lambda: admin.alter_group_offsets("g", {place: 0}),
        }

    def _alter(self, kind: ConfigResourceType, name: str, option: str) -> None:
        resource = ConfigResource(kind, name, {option: "1"})
        answers = self._admin.alter_configs([resource], raise_on_unknown=False)
        _raise_texts(answers[kind.name.lower()].values())

    def _begin_transaction(self) -> None:
        producer = KafkaProducer(transactional_id="x", max_block_ms=_TIMEOUT_MS, **self._client)
        try:
            producer.init_transactions()
        finally:
            producer.close(timeout=0)

    def _join(self, topic: str) -> None:
        consumer = KafkaConsumer(topic, group_id="g", **self._client)
        try:
            consumer.poll(_TIMEOUT_MS)
        finally:
            consumer.close()

    def _look(self, topic: str) -> None:
        _raise_code(self._admin.describe_topics([topic])[0]["error_code"])

    def _create(self, topic: str) -> None:
        """Create a topic that is there, which only tells so to who might."""
        try:
            self._admin.create_topics({topic: {"num_partitions": 1}})
        except TopicAlreadyExistsError:
            return

    def _describe_configs(self, topic: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        if not self._admin.describe_configs([resource], config_filter="all")["topic"][topic]:
            _raise_code(_TOPIC_REFUSED)  # the client gives an empty answer for it

    def _fetch(self, topic: str) -> None:
        wanted = FetchRequest.FetchTopic.FetchPartition(
            partition=0,
            current_leader_epoch=-1,
            fetch_offset=0,
            last_fetched_epoch=-1,
            partition_max_bytes=1000,
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1000,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=topic, partitions=[wanted])],
            forgotten_topics_data=[],
            rack_id="",
            max_version=_NAMED_TOPICS,
        )
        (found,) = self._sent(request).responses
        _raise_code(found.partitions[0].error_code)

    def _produce(self, topic: str) -> None:
        batch = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1000)
        batch.append(timestamp=1, key=None, value=b"x")
        batch.close()
        of_topic = ProduceRequest.TopicProduceData
        data = of_topic.PartitionProduceData(index=0, records=batch.buffer())
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=_TIMEOUT_MS,
            topic_data=[of_topic(name=topic, partition_data=[data])],
            max_version=_NAMED_TOPICS,
        )
        (found,) = self._sent(request).responses
        _raise_code(found.partition_responses[0].error_code)

    def _sent(self, request: object) -> Any:  # noqa: ANN401  # one response for each request
        manager = self._admin._manager  # noqa: SLF001 it sends what no client would
        return manager.run(manager.send, request)


_TOPIC_REFUSED = 29
_IS_REFUSED = re.compile(r"AuthorizationFailedError|needs [A-Z_]+ permission")


def _answer(ask: Callable[[], object]) -> str:
    """How Kafka answers a request."""
    try:
        ask()
    except UnknownTopicOrPartitionError:
        return HIDDEN
    except KafkaError as error:
        text = f"{type(error).__name__}: {error}"
        return REFUSED if _IS_REFUSED.search(text) else text
    return DONE


def _raise_code(code: int) -> None:
    if code:
        raise for_code(code)


def _raise_any(errors: Iterable[type[KafkaError]]) -> None:
    for error in errors:
        if error.errno:
            raise error


def _raise_texts(texts: Iterable[str | None]) -> None:
    """Raise what the client says as a text: nothing or OK if it was done."""
    for text in texts:
        if text not in {None, "OK"}:
            raise KafkaError(text)
