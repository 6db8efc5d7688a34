"""The paths of the port: a page for people, metrics for Prometheus, health for Kubernetes."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from threading import Lock
from typing import Any, Protocol

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from streaming.core.access.port_access import PortAccess
from streaming.core.model.errors import HubError
from streaming.facts.documents import document_text
from streaming.facts.health import status_document
from streaming.facts.live import conflict_document
from streaming.facts.readiness import Readiness
from streaming.facts.status.hub import HubStatus
from streaming.http.feed import EpochFeed, MayRead
from streaming.http.guard import LIVE, MAY_READ, READY, Bounds, Guard
from streaming.http.page import page_routes
from streaming.metrics.exposition import exposition

KEPT_S = 1.0
"""What the tables say is read at most so often, whoever asks for it."""


class HubAtWork(Protocol):
    """What is served of a hub."""

    def readiness(self, now_s: float) -> Readiness:
        """Whether it does its work."""

    def hub_epoch(self) -> int:
        """The last committed hub epoch; 0: none."""

    def recorded_status(self, now_s: float) -> HubStatus:
        """Its status by its tables, as the command line reads it; HubError if there is none."""

    def recorded_conflicts(self) -> Sequence[dict[str, Any]]:
        """Its last conflicts by its tables, the newest last; HubError if there are no tables."""


def application(
    hub: HubAtWork,
    registry: CollectorRegistry,
    feed: EpochFeed,
    access: Callable[[], PortAccess],
    names: frozenset[str],
) -> Starlette:
    """The application that answers for a hub, by these `names`, to whoever `access` admits now."""
    answers = Answers(hub, registry, feed)
    return Starlette(
        routes=[
            Route("/metrics", answers.metrics),
            Route(LIVE, answers.livez),
            Route(READY, answers.readyz),
            Route("/status", answers.status),
            Route("/conflicts", answers.conflicts),
            Route("/events", answers.events),
            *page_routes(),
        ],
        middleware=[Middleware(Bounds), Middleware(Guard, access=access, names=names)],
    )


@dataclass(slots=True)
class KeptTexts:
    """Documents that are read anew when they are older than `KEPT_S`."""

    turn: Lock = field(default_factory=Lock)
    texts: dict[str, tuple[float, str]] = field(default_factory=dict)

    def text(self, name: str, read: Callable[[], object]) -> str:
        """The document of this name as JSON."""
        with self.turn:
            at_s, text = self.texts.get(name, (-KEPT_S, ""))
            if time.monotonic() - at_s >= KEPT_S:
                text = document_text(read())
                self.texts[name] = time.monotonic(), text
            return text


@dataclass(slots=True)
class Answers:
    """The answers about one hub. Those that compute something run in threads of the server's."""

    hub: HubAtWork
    registry: CollectorRegistry
    feed: EpochFeed
    kept: KeptTexts = field(default_factory=KeptTexts)

    def metrics(self, request: Request) -> Response:
        """The metrics, in the format that the scraper accepts."""
        body, content_type = exposition(self.registry, request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    async def livez(self, _: Request) -> Response:
        """Whether this process answers, and nothing else: a restart mends no broker."""
        return PlainTextResponse("ok\n")

    def readyz(self, request: Request) -> Response:
        """Whether the hub does its work: 503 if not, with the reasons for whoever may read."""
        found = self.hub.readiness(time.time())
        may_read: MayRead = getattr(request.state, MAY_READ)
        document = asdict(found) if may_read() else {"ready": found.ready}
        return _json(document_text(document), 200 if found.ready else 503)

    def status(self, _: Request) -> Response:
        """The document of `slackwater status --json`."""
        return self._recorded(
            "status", lambda: status_document(self.hub.recorded_status(time.time()))
        )

    def conflicts(self, _: Request) -> Response:
        """The last conflicts, each as an `epoch` event tells it."""
        return self._recorded(
            "conflicts", lambda: list(map(conflict_document, self.hub.recorded_conflicts()))
        )

    async def events(self, request: Request) -> Response:
        """Server-sent events: `epoch` for each hub epoch, whose id it has, and `state`.

        A client that comes back (Last-Event-ID) is told those that it missed, as far as they are
        kept; a new one those from now on. They end when it may read no more, by a new token.
        """
        if not self.feed.admit():
            return PlainTextResponse("too many watch already\n", 503)
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isdecimal() else self.hub.hub_epoch()
        return EventStream(self.feed, after, getattr(request.state, MAY_READ))

    def _recorded(self, name: str, read: Callable[[], object]) -> Response:
        try:
            return _json(self.kept.text(name, read))
        except HubError as error:
            return _json(document_text({"error": str(error)}), 503)


class EventStream(StreamingResponse):
    """The events for one who was admitted, and the end of their being counted."""

    def __init__(self, feed: EpochFeed, after: int, may_read: MayRead) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(feed.events(after, may_read), 200, headers, "text/event-stream")
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client goes, or the hub ends."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._feed.left()


def _json(text: str, code: int = 200) -> Response:
    return Response(text + "\n", code, media_type="application/json")
