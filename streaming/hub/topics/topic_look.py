"""The topics as they are now, as a hub asks for them; the missing ones are created anew."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from threading import Lock

from connectors.kafka.topics import Topics
from streaming.core.intake.input_lost import TopicFacts
from streaming.core.model.errors import SourceError

LOG = logging.getLogger("slackwater")

RETRY_S = 60.0
"""How long a batch waits for Kafka's answer until the hub ends."""
PAUSE_S = 1.0


@dataclass(slots=True)
class TopicLook:
    """Looks at topics, from any thread.

    `configured`: those that are created if missing; `changes`: those of them that replicas write. A
    topic that a broker does not know counts as gone only if it can be created: one that just
    started may not know it yet, and then the creation says that it exists.
    """

    connect: Callable[[], Topics]
    configured: Collection[str]
    record_bytes: int
    changes: Collection[str]
    admin: Topics | None = None
    turn: Lock = field(default_factory=Lock)

    def look(self, names: Collection[str]) -> Mapping[str, TopicFacts]:
        """Topic -> how it is now; SourceError if Kafka does not answer for long."""
        deadline_s = time.monotonic() + RETRY_S
        while True:
            try:
                return self.look_once(names)
            except SourceError:
                if time.monotonic() > deadline_s:
                    raise
            time.sleep(PAUSE_S)

    def look_once(self, names: Collection[str]) -> Mapping[str, TopicFacts]:
        """Topic -> how it is now; SourceError if Kafka does not answer."""
        try:
            with self.turn:
                return self._look(names)
        except SourceError:
            self.close()
            raise

    def beginning_with(self, prefix: str) -> list[str]:
        """The topics with this prefix, by name; SourceError if Kafka does not answer."""
        try:
            with self.turn:
                self.admin = self.admin or self.connect()
                return self.admin.beginning_with(prefix)
        except SourceError:
            self.close()
            raise

    def _look(self, names: Collection[str]) -> Mapping[str, TopicFacts]:
        if self.admin is None:
            self.admin = self.connect()
        found = self.admin.look([*names])
        missing = [t for t, one in found.items() if one.is_gone and t in self.configured]
        if not missing:
            return found
        try:
            self.admin.ensure(missing, self.record_bytes, self.changes)
        except SourceError as error:
            LOG.warning("%s: missing, and cannot be created: %s", ", ".join(missing), error)
        return {**found, **self.admin.look(missing)}

    def close(self) -> None:
        """Close the connection."""
        with self.turn:
            admin, self.admin = self.admin, None
        if admin is not None:
            admin.close()
