"""The list of needed rights follows from the configuration, and nothing else is in it."""

import pytest

from streaming.config.config import Config
from streaming.config.rights import HUB, Role, RoleOf, every_role, needed_rights, parse_role
from streaming.core.access.rights import NeededRight, TopicRight, lacking, lacking_text
from streaming.core.model.errors import ConfigError

CONFIG = Config.model_validate(
    {
        "hub": {"state": "state", "topic_prefix": "x."},
        "kafka": {"bootstrap_servers": "127.0.0.1:9092"},
        "tables": [{"name": "t", "key": ["k"], "columns": {"k": "text"}}],
        "replicas": [{"name": "a", "rid": 1}, {"name": "b", "rid": 2}],
        "agreements": [{"name": "to-a", "consumer": "a"}, {"name": "to-b", "consumer": "b"}],
    }
)
READ, WRITE, DESCRIBE = TopicRight.READ, TopicRight.WRITE, TopicRight.DESCRIBE
FULL = {READ, TopicRight.DESCRIBE_CONFIGS, TopicRight.CREATE}


def rights_of(role: RoleOf) -> dict[str, set[TopicRight]]:
    """Topic -> the rights that a role needs there."""
    found = dict[str, set[TopicRight]]()
    for one in needed_rights(CONFIG, role):
        found.setdefault(one.topic, set()).add(one.right)
    return found


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        *(
            (
                one,
                {"x.changes.a": FULL, "x.changes.b": FULL}
                | {"x.updates.to-a": {*FULL, WRITE}, "x.updates.to-b": {*FULL, WRITE}},
            )
            for one in (HUB, RoleOf(Role.STANDBY))
        ),
        (RoleOf(Role.AGENT, "a"), {"x.changes.a": {READ, WRITE}, "x.updates.to-a": {READ}}),
        (RoleOf(Role.LEVEL), {"x.changes.a": {DESCRIBE}, "x.changes.b": {DESCRIBE}}),
    ],
)
def test_a_role_needs_these_rights(role: RoleOf, expected: dict[str, set[TopicRight]]) -> None:
    """One right more is a hole, one less an outage; a hub reads what it sent at its next start."""
    assert rights_of(role) == expected


def test_a_role_is_named_as_it_is_given() -> None:
    """What the table prints is what `doctor --role` takes; a wrong one names those there are."""
    roles = every_role(CONFIG)

    assert [parse_role(CONFIG, str(one)) for one in roles] == roles
    with pytest.raises(ConfigError, match=r"'agent:c'.*hub, agent:a, agent:b"):
        parse_role(CONFIG, "agent:c")


def test_what_is_lacking_is_told_at_once_with_whom_and_where() -> None:
    """An administrator gives all rights in one go; a topic that is not there lacks none."""
    needed = needed_rights(CONFIG, RoleOf(Role.AGENT, "a"))

    refused = lacking(needed, {"x.changes.a": {READ}, "x.updates.to-a": set()})

    assert refused == [NeededRight("x.changes.a", WRITE), NeededRight("x.updates.to-a", READ)]
    assert lacking(needed, {}) == []
    assert lacking_text(refused, "User:alpha") == (
        "Kafka refuses User:alpha Write on topic x.changes.a, Read on topic x.updates.to-a"
        " (TOPIC_AUTHORIZATION_FAILED)"
    )
