"""What a hub serves of its tables at its port, without the hub."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from checkpoints.reader import open_state
from streaming.config.config import Config
from streaming.facts.conflicts import conflicts
from streaming.facts.readiness import Readiness
from streaming.facts.status import HubStatus, hub_status
from streaming.http.application import application
from streaming.http.feed import EpochFeed
from streaming.http.server import HttpServer, listening


@dataclass(frozen=True, slots=True)
class RecordedHub:
    """What a hub at work serves of its tables."""

    config: Config

    def readiness(self, now_s: float) -> Readiness:
        """Nobody asks for it here."""
        raise NotImplementedError(now_s)

    def hub_epoch(self) -> int:
        """Nothing is committed."""
        return 0

    def recorded_status(self, now_s: float) -> HubStatus:
        """As the hub's own view reads it."""
        return hub_status(self.config, open_state(self.config.hub.state), now_s)

    def recorded_conflicts(self) -> list[dict[str, Any]]:
        """As the hub's own view reads them."""
        return conflicts(open_state(self.config.hub.state), {})


@contextmanager
def served(config: Config) -> Iterator[int]:
    """The port at which a hub of this configuration answers."""
    at = listening("127.0.0.1", 0)
    feed = EpochFeed(lambda _: None)
    server = HttpServer(at, lambda: application(RecordedHub(config), CollectorRegistry(), feed))
    server.start()
    try:
        yield int(at.getsockname()[1])
    finally:
        server.stop()
