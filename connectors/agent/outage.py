"""What an agent says while Kafka is away or refuses it, and how long it pauses."""

import logging
import threading
import time
from dataclasses import dataclass, field

from kafka.errors import InvalidTimestampError, KafkaError

from connectors.agent.access import KafkaAccess
from connectors.kafka.client_errors import ClientFault, LoggedFault, fault_of

RETRY_PAUSE_S = (0.1, 5.0)
"""The first and the longest pause between two attempts."""
MISSING_PAUSE_S = 1.0
"""The pause between two looks for a topic that the hub has not created yet."""

log = logging.getLogger(__name__)


class StopRequested(Exception):  # noqa: N818 no error
    """The agent has to stop while it waits for the broker."""


REFUSED_TIME = (
    "Kafka refuses what this agent publishes, because this machine's clock is too far from Kafka's:"
    " correct it; the agent retries, and loses nothing"
)


@dataclass(slots=True)
class Outage:
    """Logs once when the broker or a topic is missed, and once when it is there again.

    `logged`: what the clients said while the agent could not work. What the broker refuses is told
    as that, and again when it refuses something else.
    """

    stop: threading.Event
    access: KafkaAccess
    logged: LoggedFault = field(default_factory=LoggedFault)
    since_s: float | None = None
    fault: ClientFault | None = None
    missing: str | None = None
    pause_s: float = RETRY_PAUSE_S[0]

    def begin(self, reason: object) -> None:
        """Record that the broker does not answer; StopRequested if the agent has to stop."""
        if self.stop.is_set():
            raise StopRequested
        fault = fault_of(repr(reason)) or self.logged.fault
        if self.since_s is None or fault not in (None, ClientFault.ENDED, self.fault):
            log.warning("%s", self._text(reason, fault))
            self.fault = fault
        if self.since_s is None:
            self.since_s = time.monotonic()

    def _text(self, reason: object, fault: ClientFault | None) -> str:
        if isinstance(reason, InvalidTimestampError):
            return REFUSED_TIME
        if fault is ClientFault.RIGHT:
            return f"{self.access.refused() or fault}; the agent retries, and loses nothing"
        said = repr(reason) if isinstance(reason, KafkaError) else reason
        if fault is None or fault is ClientFault.ENDED:
            why = f" ({fault})" if fault else ""
            return f"Kafka does not answer, the agent retries: {said}{why}"
        who = self.access.principal or "this agent"
        return f"{fault} (as {who}: {said}); the agent retries, and loses nothing"

    def pause(self, reason: object) -> None:
        """Record it and wait, longer each time up to a bound; StopRequested likewise."""
        self.begin(reason)
        self.stop.wait(self.pause_s)
        self.pause_s = min(self.pause_s * 2, RETRY_PAUSE_S[1])

    def miss(self, topic: str) -> None:
        """Record that the broker answers, and shows no such topic."""
        if self.missing != topic:
            self.finish()
            self.missing = topic
            waits = f"waiting for topic {topic}: (re)start the hub, which creates it"
            log.warning("%s", self.access.refused() or waits)

    def await_topic(self, topic: str) -> None:
        """Record it and wait a while; StopRequested if the agent has to stop."""
        self.miss(topic)
        if self.stop.wait(MISSING_PAUSE_S):
            raise StopRequested

    def found(self, topic: str) -> None:
        """Record that the topic is there."""
        if self.missing == topic:
            log.info("topic %s is there", topic)
            self.missing = None

    def finish(self) -> None:
        """Record that the broker answered."""
        if self.since_s is not None:
            log.warning("Kafka answers again after %.1f s", time.monotonic() - self.since_s)
        self.since_s, self.pause_s = None, RETRY_PAUSE_S[0]
        self.fault = self.logged.fault = None
