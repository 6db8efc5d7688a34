"""What a hub serves of its tables at its port, without the hub."""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry

from streaming.config.config import Config
from streaming.core.access.port_access import PortAccess
from streaming.http.application import application
from streaming.http.feed import EpochFeed
from streaming.http.server import HttpServer, listening
from streaming.hub.observe.view import HubView


@contextmanager
def served(config: Config) -> Iterator[int]:
    """The port at which a hub of this configuration answers."""
    at, access = listening("127.0.0.1", 0), PortAccess
    view, feed = HubView(config), EpochFeed(lambda _: None)
    server = HttpServer(
        at, lambda: application(view, CollectorRegistry(), feed, access, frozenset()), None
    )
    server.start()
    try:
        yield int(at.getsockname()[1])
    finally:
        server.stop()
