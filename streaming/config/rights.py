"""Who needs which rights on which topics: the one list, made from the configuration."""

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from streaming.config.config import Config
from streaming.core.access.rights import NeededRight, TopicRight, agent_rights
from streaming.core.model.errors import ConfigError


class Role(StrEnum):
    """As what a user of Kafka works."""

    HUB = "hub"
    """the hub, its standby, and the commands that look into topics (`init`, `recover`, `resend`)"""
    STANDBY = "standby"
    """as the hub, which it becomes"""
    AGENT = "agent"
    """the agent of one replica"""
    LEVEL = "level"
    """whoever asks `slackwater level`"""
    OBSERVER = "observer"
    """whoever watches the topics without reading rows"""


class RoleOf(NamedTuple):
    """A role, and of an agent its replica."""

    role: Role
    replica: str = ""

    def __str__(self) -> str:
        """Return it as it is given on the command line."""
        return f"{self.role}:{self.replica}" if self.replica else self.role.value


_HUB_READS = (TopicRight.READ, TopicRight.DESCRIBE_CONFIGS, TopicRight.CREATE)
_HUB_WRITES = (TopicRight.WRITE, *_HUB_READS)
"""It reads from its second start on, how far it had sent.

It also writes what packets bring into the topics of their replicas, and nobody else may.
"""


def needed_rights(config: Config, of: RoleOf) -> tuple[NeededRight, ...]:
    """The rights that a role needs, topic by topic.

    No right on a group, a transaction or the cluster is among them. CREATE is needed while a topic
    is not there. DESCRIBE is implied by READ and by WRITE.
    """
    changes = [config.changes_topic(one.name) for one in config.replicas]
    updates = [config.updates_topic(one.name) for one in config.agreements]
    match of.role:
        case Role.HUB | Role.STANDBY:
            brought = {config.changes_topic(name) for name in config.by_packets}
            read = [topic for topic in changes if topic not in brought]
            written = [topic for topic in changes if topic in brought]
            return (*_each(read, *_HUB_READS), *_each([*written, *updates], *_HUB_WRITES))
        case Role.AGENT if of.replica in config.by_packets:
            return ()
        case Role.AGENT:
            sent = [one.name for one in config.agreements if one.consumer == of.replica]
            own = config.changes_topic(of.replica)
            return (*agent_rights(own, map(config.updates_topic, sent)),)
        case Role.LEVEL:
            return (*_each(changes, TopicRight.DESCRIBE),)
        case Role.OBSERVER:
            return (*_each([*changes, *updates], TopicRight.DESCRIBE),)


HUB = RoleOf(Role.HUB)


def user_of(one: RoleOf) -> str:
    """The name of a role's user in Kafka unless another is given: the replica's or the role's."""
    return one.replica or one.role.value


def names_of_two(roles: Iterable[RoleOf], *others: str) -> list[str]:
    """The names that several of these roles, or a role and another user, have in Kafka."""
    counts = Counter((*others, *map(user_of, roles)))
    return [name for name, count in counts.items() if count > 1]


def every_role(config: Config) -> list[RoleOf]:
    """Each role, and that of an agent for each replica that Kafka reaches."""
    reached = (one for one in config.replicas if one.name not in config.by_packets)
    agents = [RoleOf(Role.AGENT, one.name) for one in reached]
    others = (RoleOf(one) for one in (Role.STANDBY, Role.LEVEL, Role.OBSERVER))
    return [HUB, *agents, *others]


def parse_role(config: Config, text: str) -> RoleOf:
    """The role of this name, such as `hub` or `agent:alpha`; ConfigError names those there are."""
    known = {str(one): one for one in every_role(config)}
    if text not in known:
        raise ConfigError(f"there is no role {text!r}: name one of {', '.join(known)}")
    return known[text]


def _each(topics: list[str], *rights: TopicRight) -> Iterator[NeededRight]:
    for topic in topics:
        yield from (NeededRight(topic, right) for right in rights)
