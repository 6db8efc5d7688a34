"""Which topics a hub may use now: those it may read or write, and those that it pauses."""

import logging
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from streaming.core.access.rights import REMEDY, NeededRight, TopicRight, lacking_text
from streaming.core.intake.input_lost import TopicFacts
from streaming.core.text.wording import as_count

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


@dataclass(slots=True)
class Unwritable:
    """The updates topics that may not be written; `topics`: updates topic -> agreement.

    Before the first look none may, so that a hub that starts tries all of them. From then on one
    that refuses something else, such as a size, is in no answer of `note`.
    """

    topics: Mapping[str, str]
    refused: AbstractSet[str] = field(init=False)

    def __post_init__(self) -> None:
        """Know of no topic that may be written."""
        self.refused = self.topics.keys()

    def note(self, found: Mapping[str, TopicFacts]) -> frozenset[str]:
        """Take over what was found; the agreements whose topics may be written, and might not."""
        if not found:
            return frozenset()
        refused = {t for t in self.topics if t in found and not found[t].is_writable}
        again, self.refused = self.refused - refused, refused
        return frozenset(self.topics[topic] for topic in again)


class PausedTopics:
    """The replicas whose topics are paused, and a line in the log when that changes.

    `topics`: changes topic -> rid. `limit`: limits.open_transactions.
    """

    def __init__(self, topics: Mapping[str, int], limit: int) -> None:
        self._names = {rid: topic for topic, rid in topics.items()}
        self._limit = limit
        self.rids: frozenset[int] = frozenset()

    def note(self, paused: Mapping[int, int]) -> frozenset[int]:
        """Note who is paused now (rid -> its open transactions), and return the rids."""
        for rid in paused.keys() - self.rids:
            LOG.warning(
                "%s is paused: its replica has %s, limits.open_transactions is"
                " %d; end the oldest (`slackwater status` names it, `slackwater abort` ends it) or"
                " start the hub with a larger limit",
                self._names[rid],
                as_count(paused[rid], "open transaction"),
                self._limit,
            )
        for rid in self.rids - paused.keys():
            LOG.info("%s is no longer paused", self._names[rid])
        self.rids = frozenset(paused)
        return self.rids
