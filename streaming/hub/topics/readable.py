"""Which changes topics the hub may read, and what it says when that changes."""

import logging
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from streaming.core.access.rights import REMEDY, NeededRight, TopicRight, lacking_text

LOG = logging.getLogger("slackwater")


def refusal(topic: str, principal: str) -> str:
    """What Kafka refuses, and whom, of a topic that may not be read."""
    return lacking_text([NeededRight(topic, TopicRight.READ)], principal)


@dataclass(slots=True)
class Unreadable:
    """The changes topics that may not be read; `principal`: whom Kafka takes the hub for."""

    principal: str
    topics: AbstractSet[str] = frozenset()

    def note(self, topics: AbstractSet[str]) -> bool:
        """Take over which may not be read now, and say so; whether they are others than before."""
        before, self.topics = self.topics, topics
        for topic in sorted(topics - before):
            refused = refusal(topic, self.principal)
            LOG.warning("%s: its replica is unreadable, the others go on; %s", refused, REMEDY)
        for topic in sorted(before - topics):
            LOG.info("%s may be read again", topic)
        return before != topics
