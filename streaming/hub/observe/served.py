"""Serves what a hub shows of itself over HTTP, for as long as it runs."""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector

from connectors.live_value import LiveAccess
from connectors.tls import server_context
from streaming.config.access import access_faults
from streaming.config.errors import check
from streaming.facts.readiness import HubStage
from streaming.http.feed import EpochFeed
from streaming.http.server import HttpServer, listening
from streaming.hub.batch.phases import BatchTimes
from streaming.hub.observe.view import HubView
from streaming.metrics import catalogue
from streaming.metrics.exposition import Sample, SamplesCollector, histogram_of
from streaming.metrics.hub import samples

if TYPE_CHECKING:
    from starlette.applications import Starlette

LOG = logging.getLogger("slackwater")

REFRESH_S = 15.0
"""How old what only the tables know may be while somebody looks."""
RETRY_S = 1.0
REFRESH_SHARE = 100
"""At most one part of so many of the time is spent on reading the tables."""


@contextmanager
def served(view: HubView, access: LiveAccess | None = None) -> Iterator[None]:
    """Serve the view at [http] as long as the block takes.

    `access`: who may read now; None: who may by [http]. ConfigError if the port is not free, or may
    not be opened.
    """
    http = view.config.http
    access = access or LiveAccess(http.access)
    if not http.port:
        yield
        return
    check(access_faults(http))
    tls, at = server_context(access.latest), listening(http.host, http.port)
    refresher, registry, feed = TableRefresher(view), registry_of(view), EpochFeed(view.facts)
    server = HttpServer(at, lambda: _application(view, access, registry, feed), tls)
    view.watchers.append(feed.note)
    server.start()
    refresher.start()
    LOG.info("serves metrics and status at %s", server.address)
    try:
        yield
    finally:
        feed.is_closed = True
        refresher.stop()
        server.stop()


def _application(
    view: HubView, access: LiveAccess, registry: CollectorRegistry, feed: EpochFeed
) -> "Starlette":
    from streaming.http.application import application  # noqa: PLC0415 in the server's thread

    http = view.config.http
    names = access.latest.known_as(http.host, socket.gethostname())
    return application(view, registry, feed, access.now, names)


def registry_of(view: HubView) -> CollectorRegistry:
    """All metrics of a hub, and those of its Python process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)

    def now() -> Iterator[Sample]:
        return samples(view.facts(time.time()), stands_by=view.stage is HubStage.STANDBY)

    registry.register(SamplesCollector(catalogue.HUB_METRICS, now))
    whole = histogram_of(catalogue.BATCH_SECONDS, registry)
    phases = histogram_of(catalogue.PHASE_SECONDS, registry)

    def observe(times: BatchTimes) -> None:
        whole.observe(times.seconds)
        for phase, took_s in times.phases:
            phases.labels(phase.value).observe(took_s)

    view.phases.observers.append(observe)
    return registry


@dataclass(slots=True)
class TableRefresher:
    """A thread that reads what only the tables know, while somebody looks at the hub.

    It reads for one hundredth of the time at most, so a state whose tables take long to read is
    read less often.
    """

    view: HubView
    stopped: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to read."""
        self.thread = threading.Thread(target=self._run, name="facts", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Stop reading; a reading in progress keeps no process alive."""
        self.stopped.set()
        self.view.looked_at.set()

    def _run(self) -> None:
        while self.view.looked_at.wait() and not self.stopped.is_set():
            self.view.looked_at.clear()
            began_s = time.monotonic()
            is_read = self._refresh()
            took_s = time.monotonic() - began_s
            self.stopped.wait(max(REFRESH_S, took_s * REFRESH_SHARE) if is_read else RETRY_S)

    def _refresh(self) -> bool:
        try:
            return self.view.refresh()
        except Exception:  # a file that a compaction removed meanwhile, for instance
            LOG.debug("the tables could not be read for metrics", exc_info=True)
            return False
