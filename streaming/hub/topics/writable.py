"""Whose updates topics the hub may write again, as it finds when it looks at the topics."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from streaming.core.intake.input_lost import TopicFacts


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
