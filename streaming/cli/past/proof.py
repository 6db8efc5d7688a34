"""The metrics of `verify --continuous`: up to where the history is proven, and since when."""

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge

from connectors.live_value import LiveAccess
from connectors.metrics_server import metrics_served
from streaming.core.access.port_access import EVERYBODY, LOOPBACK

if TYPE_CHECKING:
    from streaming.replay.verify import Audit


class Proof:
    """The last sound audit."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.epoch = Gauge(
            "slackwater_proven_hub_epoch",
            "Hub epoch up to which an audit found nothing.",
            registry=self.registry,
        )
        self.age = Gauge(
            "slackwater_proof_age_seconds",
            "Seconds since the last audit that found nothing.",
            registry=self.registry,
        )
        self.at_s = time.monotonic()
        self.age.set_function(lambda: time.monotonic() - self.at_s)

    def served(self, port: int) -> AbstractContextManager[None]:
        """Serve it to this machine as long as the block takes; ConfigError: it cannot be."""
        return metrics_served(self.registry, LOOPBACK, port, LiveAccess(EVERYBODY))

    def note(self, audit: "Audit") -> None:
        """Note an audit, if it is sound."""
        if audit.is_sound:
            self.epoch.set(audit.to_epoch)
            self.at_s = time.monotonic()
