"""A hub whose broker is away: it waits for as long as that takes, says so, and is opened anew.

What a hub that dies leaves behind is finished by the next one: its plan is judged, and what it
published is published again with the same ids. So is what a failed batch of this very process left.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kafka.errors import (
    AuthorizationError,
    IllegalSaslStateError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from checkpoints.last_poll import note_away
from connectors.kafka.topics import Topics
from streaming.config.config import Config
from streaming.core.model.errors import ConfigError, HubError, OvertakenError, StateError
from streaming.hub.poll import CONNECT_MS
from streaming.hub.view import HubView

LOG = logging.getLogger("slackwater")

FAILURES = (HubError, PySparkException, Py4JJavaError)
"""How a service ends that cannot go on."""

SAID_EVERY_S = 60.0
"""How often the log says that the hub still waits."""
PAUSE_S = 2.0
"""The pause between two attempts to reach Kafka."""

_NOT_OF_KAFKA = (OvertakenError, StateError, ConfigError)
_REFUSED = (
    AuthorizationError,
    IllegalSaslStateError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
"""What no waiting changes: the user, the password or the rights are wrong."""
_NOT_DELIVERED = (
    "Cannot fetch record for offset",
    "org.apache.kafka.common.errors.Timeout",
    "Message timed out",
    "Not authorized to access topics",
)
"""What Spark and librdkafka say of a broker that neither delivers nor takes anything, or that does
not let a topic be read: a hub that is opened anew reads the others."""


@dataclass(slots=True)
class KafkaOutage:
    """Tells whether a service failed because its broker is away, and waits for it.

    `ask`: reaches Kafka, or raises HubError.
    """

    config: Config
    view: HubView
    ask: Callable[[], None] = field(init=False)

    def __post_init__(self) -> None:
        """Ask by a connection of its own."""
        self.ask = self._connect

    def is_why(self, error: BaseException, *, is_missed: bool) -> bool:
        """Return whether a service ended because Kafka is away; `is_missed`: its poll missed it.

        A broker that has just come back counts too: what failed is tried again.
        """
        if isinstance(error, _NOT_OF_KAFKA) or _is_refused(error):
            return False
        is_told = any(text in str(one) for one in _causes(error) for text in _NOT_DELIVERED)
        return is_missed or is_told or self._failure() is not None

    def is_over(self, error: BaseException, end: threading.Event) -> bool:
        """Wait until Kafka answers; False: the hub has to end before that.

        HubError if Kafka refuses the hub's user.
        """
        since_s, said_s = time.time(), float("-inf")
        self.view.away_s = since_s
        LOG.warning("Kafka is away: %s", str(error).partition("\n")[0])
        try:
            while not end.is_set():
                failed = self._failure()
                if failed is None:
                    LOG.warning("Kafka answers after %.0f s", time.time() - since_s)
                    return True
                if time.monotonic() - said_s >= SAID_EVERY_S:
                    said_s = time.monotonic()
                    self._say(since_s, failed)
                note_away(self.config.hub.state, since_s, self.config.kafka.bootstrap_servers)
                end.wait(PAUSE_S)
        finally:
            self.view.away_s = None
        LOG.info("stopped while it waited for Kafka; the next start goes on from here")
        return False

    def _say(self, since_s: float, reason: HubError) -> None:
        LOG.warning(
            "the hub waits for Kafka at %s, which does not answer since %s UTC: %s",
            self.config.kafka.bootstrap_servers,
            time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(since_s)),
            reason,
        )

    def _failure(self) -> HubError | None:
        """Why Kafka cannot be reached; None: it answers."""
        try:
            self.ask()
        except HubError as error:
            if _is_refused(error):
                raise
            return error
        return None

    def _connect(self) -> None:
        kafka = self.config.kafka
        with Topics(kafka.bootstrap_servers, kafka.options, CONNECT_MS) as topics:
            topics.existing([])


def _is_refused(error: BaseException) -> bool:
    return any(isinstance(one, _REFUSED) for one in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__
