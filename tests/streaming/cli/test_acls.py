"""Claims about `acls`: one list, as a table, as commands, and as resources for Strimzi."""

import shlex
from pathlib import Path

import yaml

from tests.streaming.cli.conftest import Slackwater


def test_the_table_has_every_user(slackwater: Slackwater) -> None:
    """An administrator sees who needs what before anything runs."""
    found = slackwater("acls", "--json").facts

    assert {one["role"] for one in found} >= {"hub", "standby", "agent:a", "level", "observer"}
    of_agent = [(one["right"], one["topic"]) for one in found if one["role"] == "agent:a"]
    topic = next(topic for right, topic in of_agent if right == "Write")
    assert topic.endswith("changes.a")
    assert topic in slackwater("acls").out


def test_the_commands_can_be_run_as_they_are(slackwater: Slackwater) -> None:
    """They are pasted into a shell; each names one topic and all that its user may do there."""
    lines = slackwater("acls", "hub", "--format", "kafka-acls", "--principal", "my hub")

    words = [shlex.split(line) for line in lines.out.splitlines()]
    assert all(one[0] == "kafka-acls" and "User:my hub" in one for one in words)
    topics = [one[one.index("--topic") + 1] for one in words]
    assert len(topics) == len(set(topics))
    assert any({"Read", "Write", "Create", "DescribeConfigs"} <= {*one} for one in words)


def test_strimzi_gets_a_user_for_each(slackwater: Slackwater) -> None:
    """The same rights, as the resource of its user operator."""
    text = slackwater("acls", "agent:a", "--format", "strimzi", "--cluster", "mine").out

    (user,) = yaml.safe_load_all(text)
    assert user["kind"] == "KafkaUser"
    assert user["metadata"] == {"name": "a", "labels": {"strimzi.io/cluster": "mine"}}
    rules = user["spec"]["authorization"]["acls"]
    by_topic = {one["resource"]["name"]: one["operations"] for one in rules}
    assert [operations for name, operations in by_topic.items() if "changes.a" in name] == [
        ["Read", "Write"]
    ]


def test_an_unknown_role_names_those_there_are(slackwater: Slackwater) -> None:
    """A name that is mistyped must not print an empty list, which gives nothing."""
    answer = slackwater("acls", "hubb")

    assert answer.code == 2
    assert "name one of hub, agent:a" in answer.err


def test_a_replica_that_is_called_like_a_role_is_no_user_of_both(
    slackwater: Slackwater, config_file: Path
) -> None:
    """Whoever asks for the level could write as the replica."""
    renamed = config_file.read_text(encoding="utf-8").replace('"a"', '"level"')
    config_file.write_text(renamed, encoding="utf-8")

    answer = slackwater("acls", "--format", "kafka-acls")
    alone = slackwater("acls", "agent:level", "--principal", "oslo")

    assert (answer.code, answer.out) == (2, "")
    assert "`slackwater acls agent:level --principal NAME`" in answer.err
    assert "oslo" in alone.out
