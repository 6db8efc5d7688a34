"""A hub whose broker is away: it waits for as long as that takes, says so, and is opened anew.

So does one that has worked and that its broker then refuses: a password or a certificate that is
changed is wrong on one side for a while.

What a hub that dies leaves behind is finished by the next one: its plan is judged, and what it
published is published again with the same ids. So is what a failed batch of this very process left.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from checkpoints.commit.last_poll import note_away
from connectors.kafka.client_errors import ClientFault, fault_of, refused_text
from connectors.kafka.options import LiveOptions, principal_of
from connectors.kafka.topics import Topics
from streaming.config.config import Config
from streaming.config.rights import HUB, needed_rights
from streaming.core.model.errors import ConfigError, HubError, OvertakenError, StateError
from streaming.hub.observe.view import HubView
from streaming.hub.topics.found_topics import check_rights
from streaming.hub.topics.poll import CONNECT_MS

LOG = logging.getLogger("slackwater")

FAILURES = (HubError, PySparkException, Py4JJavaError)
"""How a service ends that cannot go on."""

SAID_EVERY_S = 60.0
"""How often the log says that the hub still waits."""
PAUSE_S = 2.0
"""The pause between two attempts to reach Kafka."""

_NOT_OF_KAFKA = (OvertakenError, StateError, ConfigError)
_REFUSED = {
    ClientFault.LOGIN,
    ClientFault.CERTIFICATE,
    ClientFault.OWN_CERTIFICATE,
    ClientFault.PROTOCOL,
    ClientFault.RIGHT,
}
"""What Kafka and its clients say of the user, of its rights or of TLS."""
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
    """Tells whether a service failed because its broker is away or refuses it, and waits for it.

    `options`: as they are now. `has_worked`: Kafka let this process work before, so what it refuses
    was changed; otherwise it was never right, and the hub ends. `ask`: reaches Kafka, or raises
    HubError.
    """

    config: Config
    view: HubView
    options: LiveOptions
    has_worked: bool = False
    ask: Callable[[], None] = field(init=False)

    def __post_init__(self) -> None:
        """Ask by a connection of its own."""
        self.ask = self._connect

    def is_why(self, error: BaseException, *, is_missed: bool) -> bool:
        """Return whether a service ended because Kafka is away; `is_missed`: its poll missed it.

        A broker that has just come back counts too: what failed is tried again.
        """
        if isinstance(error, _NOT_OF_KAFKA):
            return False
        if _refusal(error) is not None:
            return self.has_worked
        is_reported = any(text in str(one) for one in _causes(error) for text in _NOT_DELIVERED)
        return is_missed or is_reported or self._failure() is not None

    def is_over(self, error: BaseException, end: threading.Event) -> bool:
        """Wait until Kafka answers; False: the hub has to end before that.

        HubError if Kafka refuses a hub that it has never let work.
        """
        since_s, said_s = time.time(), float("-inf")
        self.view.away_s, self.view.away_why = since_s, self._why(error)
        line = str(error).partition("\n")[0]
        LOG.warning("%s", self.view.away_why or f"Kafka is away: {line}")
        try:
            while not end.is_set():
                failed = self._failure()
                if failed is None:
                    LOG.warning("Kafka answers after %.0f s", time.time() - since_s)
                    return True
                if time.monotonic() - said_s >= SAID_EVERY_S:
                    said_s = time.monotonic()
                    self._say(since_s, failed)
                self._note_why(failed)
                at = self.config.hub.state, since_s, self.config.kafka.bootstrap_servers
                note_away(*at, self.view.away_why)
                end.wait(PAUSE_S)
        finally:
            self.view.away_s, self.view.away_why = None, ""
        LOG.info("stopped while it waited for Kafka; the next start goes on from here")
        return False

    def _note_why(self, failed: HubError) -> None:
        """Keep what Kafka refuses where a client says no more than that its connection was ended.

        kafka-python often misses the answer to a wrong password.
        """
        if fault_of(str(failed)) is not ClientFault.ENDED:
            self.view.away_why = self._why(failed)

    def _why(self, error: BaseException) -> str:
        """What Kafka refuses, and whom; "": it does not answer."""
        fault = _refusal(error)
        if fault is ClientFault.RIGHT:
            return str(error).partition("\n")[0]
        return refused_text(fault, principal_of(self.options.now()), "the hub") if fault else ""

    def _say(self, since_s: float, reason: HubError) -> None:
        LOG.warning(
            "the hub waits for Kafka at %s since %s UTC: %s",
            self.config.kafka.bootstrap_servers,
            time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(since_s)),
            reason,
        )

    def _failure(self) -> HubError | None:
        """Why Kafka cannot be reached; None: it answers."""
        try:
            self.ask()
        except HubError as error:
            if _refusal(error) is not None and not self.has_worked:
                raise
            return error
        return None

    def _connect(self) -> None:
        config, address = self.config, self.config.kafka.bootstrap_servers
        changes = [config.changes_topic(one.name) for one in config.replicas]
        updates = [config.updates_topic(one.name) for one in config.agreements]
        with Topics(address, self.options.now(), CONNECT_MS) as topics:
            check_rights(topics, needed_rights(config, HUB), changes, updates)


def _refusal(error: BaseException) -> ClientFault | None:
    """What Kafka refuses of the user or of TLS, by what the error or a cause of it says."""
    found = (fault_of(str(one)) for one in _causes(error))
    return next((one for one in found if one in _REFUSED), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__
