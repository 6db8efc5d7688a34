"""A hub finds out when it starts which rights it lacks, on a broker that denies by default."""

import logging
from collections.abc import Iterator

import pytest

from connectors.kafka.embedded.broker import Broker
from connectors.kafka.sink import UpdatesSink
from connectors.kafka.topics import Topics
from streaming.config.config import Config
from streaming.config.rights import HUB, needed_rights
from streaming.core.access.rights import NeededRight, TopicRight
from streaming.core.model.errors import PublishError, SourceError
from streaming.hub.topics.found_topics import FoundTopics, find_topics
from tests.harness.closed_broker import closed_broker, grant, options, revoke
from tests.harness.hub_process import wait_until

RECORD_BYTES = 20_000
CONNECT_MS = 5_000
CHANGES, UPDATES = ("x.changes.a", "x.changes.b"), ("x.updates.a", "x.updates.b")


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker on which the hub's user may do nothing yet."""
    with closed_broker(tmp_path_factory.mktemp("closed"), ["hub"]) as running:
        yield running


def config_of(broker: Broker) -> Config:
    """A hub with two replicas."""
    members = [{"name": name, "rid": rid} for rid, name in enumerate("ab", 1)]
    return Config.model_validate(
        {
            "hub": {"state": "state", "topic_prefix": "x."},
            "kafka": {"bootstrap_servers": broker.bootstrap_servers, "options": options("hub")},
            "tables": [{"name": "t", "key": ["k"], "columns": {"k": "text"}}],
            "replicas": members,
            "agreements": [{"name": one["name"], "consumer": one["name"]} for one in members],
        }
    )


def start(config: Config) -> FoundTopics:
    """Find the topics as a hub does that starts."""
    kafka, needed = config.kafka, needed_rights(config, HUB)
    with Topics(kafka.bootstrap_servers, kafka.options) as admin:
        return find_topics(admin, needed, CHANGES, UPDATES, RECORD_BYTES)


def told(config: Config, caplog: pytest.LogCaptureFixture) -> tuple[bool, str]:
    """Whether a start is refused, and what is said of rights, by the error or by the log."""
    caplog.clear()
    try:
        start(config)
    except SourceError as error:
        return True, str(error)
    ours = [one for one in caplog.records if one.name == "slackwater"]
    return False, "\n".join(one.getMessage() for one in ours)


def test_exactly_the_listed_rights_are_enough_and_each_is_needed(
    closed: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """The list is what an administrator gives: no hub may need more, and none of it is for show."""
    caplog.set_level(logging.WARNING, "slackwater")
    config, bootstrap = config_of(closed), closed.bootstrap_servers
    needed = needed_rights(config, HUB)

    is_refused, text = told(config, caplog)
    assert is_refused
    for one in needed:
        assert str(one) in text or one.right is TopicRight.CREATE, text
    assert text.startswith("Kafka refuses User:hub ")
    assert "`slackwater acls`" in text

    not_creating = [one for one in needed if one.right is not TopicRight.CREATE]
    grant(bootstrap, "hub", not_creating)
    creates = [NeededRight(topic, TopicRight.CREATE) for topic in (*CHANGES, *UPDATES)]
    wait_until(
        lambda: all(str(one) in told(config, caplog)[1] for one in creates),
        lambda: told(config, caplog)[1],
    )
    grant(bootstrap, "hub", creates)
    wait_until(lambda: told(config, caplog) == (False, ""), lambda: told(config, caplog)[1])
    assert start(config).ids.keys() == {*CHANGES, *UPDATES}

    for one in (right for right in not_creating if right.topic in {CHANGES[0], UPDATES[0]}):
        revoke(bootstrap, "hub", one)
        wait_until(
            lambda one=one: str(one) in told(config, caplog)[1],  # type: ignore[misc]
            lambda: told(config, caplog)[1],
        )
        stops_one = (CHANGES[0], TopicRight.READ), (UPDATES[0], TopicRight.WRITE)
        assert told(config, caplog)[0] is ((one.topic, one.right) not in stops_one), one
        grant(bootstrap, "hub", [one])
        wait_until(lambda: told(config, caplog) == (False, ""), lambda: told(config, caplog)[1])

    for topic in UPDATES:
        revoke(bootstrap, "hub", NeededRight(topic, TopicRight.WRITE))
    wait_until(lambda: told(config, caplog)[0], lambda: told(config, caplog)[1])
    assert all(f"Write on topic {topic}" in told(config, caplog)[1] for topic in UPDATES)


@pytest.mark.parametrize(
    ("wrong", "told_as"),
    [
        (options("hub", "mistyped"), "Kafka refuses the login|the login in kafka.options is wrong"),
        ({**options("hub"), "security.protocol": "SASL_SSL"}, "one side speaks TLS"),
    ],
    ids=["password", "protocol"],
)
def test_what_is_wrong_with_a_connection_is_named_by_both_clients(
    closed: Broker, wrong: dict[str, str], told_as: str
) -> None:
    """Neither looks for a broker that is down, which "unable to bootstrap" and the like suggest."""
    with pytest.raises(SourceError, match=told_as):
        Topics(closed.bootstrap_servers, wrong, CONNECT_MS)
    with pytest.raises(PublishError, match=told_as):
        UpdatesSink(closed.bootstrap_servers, wrong, CONNECT_MS)
