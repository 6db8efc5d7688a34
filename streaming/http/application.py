"""The paths of the port: metrics for Prometheus, health for Kubernetes, the status for people."""

import time
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from streaming.core.model.errors import HubError
from streaming.facts.documents import document_text
from streaming.facts.health import status_document
from streaming.facts.readiness import Readiness
from streaming.facts.status import HubStatus
from streaming.metrics.exposition import exposition

STATUS_KEPT_S = 1.0
"""The status is read from the tables at most so often, whoever asks for it."""


class HubAtWork(Protocol):
    """What is served of a hub."""

    def readiness(self, now_s: float) -> Readiness:
        """Whether it does its work."""

    def recorded_status(self, now_s: float) -> HubStatus:
        """Its status by its tables, as the command line reads it; HubError if there is none."""


def application(hub: HubAtWork, registry: CollectorRegistry) -> Starlette:
    """The application that answers for a hub."""
    answers = Answers(hub, registry)
    return Starlette(
        routes=[
            Route("/metrics", answers.metrics),
            Route("/livez", answers.livez),
            Route("/readyz", answers.readyz),
            Route("/status", answers.status),
        ]
    )


@dataclass(slots=True)
class Answers:
    """The answers about one hub. Those that compute something run in threads of the server's."""

    hub: HubAtWork
    registry: CollectorRegistry
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
