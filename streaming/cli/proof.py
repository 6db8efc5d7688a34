"""The metrics of `verify --continuous`: up to where the history is proven, and since when."""

import time
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge, start_http_server

if TYPE_CHECKING:
    from streaming.replay.verify import Audit


class Proof:
    """The last sound audit; `port`: where Prometheus finds it on this machine, None: nowhere."""

    def __init__(self, port: int | None) -> None:
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
        if port is not None:
            start_http_server(port, addr="127.0.0.1", registry=self.registry)

    def note(self, audit: "Audit") -> None:
        """Note an audit, if it is sound."""
        if audit.is_sound:
            self.epoch.set(audit.to_epoch)
            self.at_s = time.monotonic()
