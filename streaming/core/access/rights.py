"""Rights on topics: what one is, and how one that is missing is told."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto


class TopicRight(Enum):
    """What a user may be allowed on a topic, by Kafka's names."""

    READ = auto()
    WRITE = auto()
    CREATE = auto()
    DESCRIBE = auto()
    DESCRIBE_CONFIGS = auto()

    @property
    def operation(self) -> str:
        """Its name as kafka-acls and Strimzi spell it."""
        return "".join(part.capitalize() for part in self.name.split("_"))


@dataclass(frozen=True, slots=True)
class NeededRight:
    """A right that somebody needs on a topic."""

    topic: str
    right: TopicRight

    def __str__(self) -> str:
        return f"{self.right.operation} on topic {self.topic}"


def agent_rights(changes: str, updates: Iterable[str]) -> list[NeededRight]:
    """The rights of an agent: on its own topic, and on those in which the hub sends to it."""
    own = [NeededRight(changes, TopicRight.READ), NeededRight(changes, TopicRight.WRITE)]
    return own + [NeededRight(topic, TopicRight.READ) for topic in updates]


REMEDY = "`slackwater acls` prints the rights that are needed, and the commands that give them"


def lacking_text(lacking: Sequence[NeededRight], principal: str) -> str:
    """Which rights Kafka refuses whom; `principal`: "" if that is not known."""
    what = ", ".join(map(str, lacking))
    return f"Kafka refuses {principal or 'this user'} {what} (TOPIC_AUTHORIZATION_FAILED)"


def lacking(
    needed: Iterable[NeededRight], allowed: Mapping[str, Collection[TopicRight]]
) -> list[NeededRight]:
    """Those of the rights that are not given; `allowed`: topic -> what may be done with it.

    On a topic that is not among these nothing is lacking: it is not there yet.
    """
    return [
        one
        for one in needed
        if one.right is not TopicRight.CREATE
        and one.topic in allowed
        and one.right not in allowed[one.topic]
    ]
