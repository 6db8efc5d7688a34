"""The paths of the port: metrics for Prometheus, health for Kubernetes, the status for people."""

import time
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from streaming.core.model.errors import HubError
from streaming.facts.documents import document_text
from streaming.facts.health import status_document
from streaming.facts.readiness import Readiness
from streaming.facts.status import HubStatus
from streaming.http.feed import WATCHERS_MAX, EpochFeed
from streaming.metrics.exposition import exposition

STATUS_KEPT_S = 1.0
"""The status is read from the tables at most so often, whoever asks for it."""


class HubAtWork(Protocol):
    """What is served of a hub."""

    def readiness(self, now_s: float) -> Readiness:
        """Whether it does its work."""

    def hub_epoch(self) -> int:
        """The last committed hub epoch; 0: none."""

    def recorded_status(self, now_s: float) -> HubStatus:
        """Its status by its tables, as the command line reads it; HubError if there is none."""


def application(hub: HubAtWork, registry: CollectorRegistry, feed: EpochFeed) -> Starlette:
    """The application that answers for a hub."""
    answers = Answers(hub, registry, feed)
    return Starlette(
        routes=[
            Route("/metrics", answers.metrics),
            Route("/livez", answers.livez),
            Route("/readyz", answers.readyz),
            Route("/status", answers.status),
            Route("/events", answers.events),
        ]
    )


@dataclass(slots=True)
class Answers:
    """The answers about one hub. Those that compute something run in threads of the server's."""

    hub: HubAtWork
    registry: CollectorRegistry
    feed: EpochFeed
    turn: Lock = field(default_factory=Lock)
    status_text: str = ""
    status_s: float = -STATUS_KEPT_S

    def metrics(self, request: Request) -> Response:
        """The metrics, in the format that the scraper accepts."""
        body, content_type = exposition(self.registry, request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    async def livez(self, _: Request) -> Response:
        """Whether this process answers, and nothing else: a restart mends no broker."""
        return PlainTextResponse("ok\n")

    def readyz(self, _: Request) -> Response:
        """Whether the hub does its work: 503 with the reasons if not."""
        found = self.hub.readiness(time.time())
        return _json(document_text(found.document()), 200 if found.ready else 503)

    def status(self, _: Request) -> Response:
        """The document of `slackwater status --json`."""
        try:
            return _json(self._status())
        except HubError as error:
            return _json(document_text({"error": str(error)}), 503)

    async def events(self, request: Request) -> Response:
        """Server-sent events: `epoch` for each hub epoch, whose id it has, and `state`.

        A client that comes back (Last-Event-ID) is told those that it missed, as far as they are
        kept; a new one those from now on.
        """
        if self.feed.watchers >= WATCHERS_MAX:
            return PlainTextResponse("too many watch already\n", 503)
        self.feed.expect()
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isdecimal() else self.hub.hub_epoch()
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self.feed.events(after), 200, headers, "text/event-stream")

    def _status(self) -> str:
        with self.turn:
            if time.monotonic() - self.status_s >= STATUS_KEPT_S:
                self.status_text = document_text(
                    status_document(self.hub.recorded_status(time.time()))
                )
                self.status_s = time.monotonic()
            return self.status_text


def _json(text: str, code: int = 200) -> Response:
    return Response(text + "\n", code, media_type="application/json")
