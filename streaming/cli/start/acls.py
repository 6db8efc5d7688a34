"""`acls`: the rights that the hub, its agents and those who ask need in Kafka."""

import shlex
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Annotated

import typer

from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath
from streaming.config.config import Config
from streaming.config.rights import (
    RoleOf,
    every_role,
    names_of_two,
    needed_rights,
    parse_role,
    user_of,
)
from streaming.config.sources.load import load
from streaming.core.access.rights import NeededRight
from streaming.core.model.errors import ConfigError
from streaming.terminal.output import write_json, write_line, write_table


class AclFormat(StrEnum):
    """How the rights are printed."""

    TABLE = "table"
    """for people"""
    KAFKA_ACLS = "kafka-acls"
    """the commands that give them"""
    STRIMZI = "strimzi"
    """a KafkaUser for each, for Strimzi's user operator"""


OfRole = Annotated[
    str | None,
    typer.Argument(
        metavar="[ROLE]",
        help="hub, standby, agent:REPLICA, level or observer; all of them by default.",
    ),
]
Format = Annotated[
    AclFormat, typer.Option("--format", help="A table, commands, or YAML for Strimzi.")
]
Principal = Annotated[
    str | None,
    typer.Option(
        "--principal",
        metavar="NAME",
        help="The user in Kafka, without `User:`; by default the role or the replica.",
    ),
]
Cluster = Annotated[
    str, typer.Option("--cluster", metavar="NAME", help="The cluster's name, for Strimzi.")
]


def acls(
    role: OfRole = None,
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    format_: Format = AclFormat.TABLE,
    principal: Principal = None,
    cluster: Cluster = "kafka",
    as_json: AsJson = False,
) -> None:
    """Print the rights in Kafka that the hub, each agent and those who ask need.

    They are made from the configuration; the hub checks its own when it starts.
    """
    with cannot_say():
        configured = load(config)
        roles = [parse_role(configured, role)] if role else every_role(configured)
        if principal is None:
            _check_users(roles)
        found = [(principal or user_of(one), one, needed_rights(configured, one)) for one in roles]
    if as_json:
        write_json([_document(u, of, one) for u, of, rights in found for one in rights])
        return
    match format_:
        case AclFormat.TABLE:
            rows = ((user, *_words(one)) for user, _, rights in found for one in rights)
            write_table(("user", "right", "topic"), rows)
        case AclFormat.KAFKA_ACLS:
            for user, _, rights in found:
                for line in _commands(configured, user, rights):
                    write_line(line)
        case AclFormat.STRIMZI:
            for user, _, rights in found:
                for line in _kafka_user(user, rights, cluster):
                    write_line(line)


def _check_users(roles: Sequence[RoleOf]) -> None:
    """ConfigError if two roles would be one user, who then had the rights of both."""
    if names := names_of_two(roles):
        name = names[0]
        raise ConfigError(
            f"replica {name!r} has the name of a role, and their users in Kafka would be one: print"
            f" each with a user of its own, as `slackwater acls agent:{name} --principal NAME`"
        )


def _words(one: NeededRight) -> tuple[str, str]:
    return one.right.operation, one.topic


def _document(user: str, of: RoleOf, one: NeededRight) -> dict[str, str]:
    right, topic = _words(one)
    return {"user": user, "role": str(of), "right": right, "topic": topic}


def _by_topic(rights: Sequence[NeededRight]) -> Iterator[tuple[str, list[str]]]:
    for topic, some in groupby(rights, lambda one: one.topic):
        yield topic, [one.right.operation for one in some]


def _commands(config: Config, user: str, rights: Sequence[NeededRight]) -> Iterator[str]:
    """A command for each topic; who runs it names its own login in admin.properties."""
    for topic, operations in _by_topic(rights):
        words = ["kafka-acls", "--bootstrap-server", config.kafka.bootstrap_servers]
        words += ["--command-config", "admin.properties", "--add", "--force"]
        words += ["--allow-principal", f"User:{user}", "--topic", topic]
        yield shlex.join(words + [w for one in operations for w in ("--operation", one)])


def _kafka_user(user: str, rights: Sequence[NeededRight], cluster: str) -> Iterator[str]:
    """A resource of Strimzi; how the user logs in is left to whoever applies it."""
    yield "---"
    yield "apiVersion: kafka.strimzi.io/v1beta2"
    yield "kind: KafkaUser"
    yield "metadata:"
    yield f"  name: {user}"
    yield f"  labels: {{ strimzi.io/cluster: {cluster} }}"
    yield "spec:"
    yield "  authorization:"
    yield "    type: simple"
    yield "    acls:"
    for topic, operations in _by_topic(rights):
        yield f"      - resource: {{ type: topic, name: {topic}, patternType: literal }}"
        yield f"        operations: [{', '.join(operations)}]"
