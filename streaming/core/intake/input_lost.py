"""Input lost: a topic no longer holds what the hub would read next, or is another one by its name.

Ids of topics are never used again and first offsets only rise, so what is lost once stays lost:
whoever looks later comes to the same answer.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

ALL_OFFSETS = 2**63 - 1
RECREATED = "its topic was deleted and created again"
DELETED = "its topic was deleted"


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as Kafka has it: its id, its oldest offset and the next one; `id` "": it is gone.

    `is_readable` False: Kafka refuses the right to read it. It may hide all else then, so that
    nobody knows whether it is there: HIDDEN. `is_writable` False: it refuses the right to write it.
    """

    id: str
    first: int = 0
    end: int = 0
    is_readable: bool = True
    is_writable: bool = True

    @property
    def is_gone(self) -> bool:
        """Return whether Kafka knows no such topic."""
        return not self.id and self.is_readable


GONE = TopicFacts("")
HIDDEN = TopicFacts("", is_readable=False, is_writable=False)


def unreadable(topics: Mapping[str, TopicFacts]) -> frozenset[str]:
    """Those of the topics that may not be read."""
    return frozenset(name for name, one in topics.items() if not one.is_readable)


def heads(topics: Mapping[str, TopicFacts]) -> dict[str, TopicFacts]:
    """The topics without their ends, which a hub that reads on soon passes."""
    return {name: replace(one, end=ALL_OFFSETS) for name, one in topics.items()}


@dataclass(frozen=True, slots=True)
class TopicLoss:
    """What happened to a topic, and how it is now."""

    detail: str
    now: TopicFacts


@dataclass(frozen=True, slots=True)
class InputLoss:
    """A replica of which input is lost; `offset`: of the first record that there is."""

    rid: int
    detail: str
    offset: int


def losses(
    known_ids: Mapping[str, str],
    offsets: Mapping[str, int],
    now: Mapping[str, TopicFacts],
    among: Collection[str],
) -> dict[str, TopicLoss]:
    """Topic -> its loss, of these topics, for a hub that knows them by these ids.

    `offsets`: topic -> the offset that the hub reads next; absent: the hub only writes there.
    A topic whose id is not known yet, or of which Kafka said or shows nothing, has lost nothing.
    """
    found = {
        topic: _detail(known_ids[topic], offsets.get(topic), now[topic])
        for topic in among
        if topic in known_ids and topic in now and now[topic] != HIDDEN
    }
    return {topic: TopicLoss(text, now[topic]) for topic, text in found.items() if text}


def _detail(known_id: str, offset: int | None, now: TopicFacts) -> str | None:
    """Say what is lost; None: nothing."""
    if now.id != known_id:
        return RECREATED if now.id else DELETED
    if offset is None or not now.id:
        return None
    if now.first > offset:
        return (
            f"offsets {offset} to {now.first - 1} of its topic were deleted before they were read"
        )
    if now.end < offset:
        return f"its topic ends at offset {now.end}, and the hub has read up to {offset}"
    return None
