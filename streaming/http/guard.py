"""Who is answered at all: by Host header, token, certificate or cookie; and how much at once."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streaming.core.access.port_access import PortAccess, is_known_host
from streaming.http.page import PAGE_PATHS

REQUESTS_MAX = 100
REQUESTS_OF_ADDRESS_MAX = 50
"""So many requests are answered at once, in all and to one address."""
LIVE = "/livez"
READY = "/readyz"
ACCESS = "/access"
"""Where the page asks whether it may read, and changes a token into a cookie."""
CERTIFICATE = "has_certificate"
"""In the state of a connection: whether its client has shown a certificate of `http.client_ca`."""
MAY_READ = "may_read"
"""In the state of a request: a function that says whether it may read what the hub holds."""

_KEPT_NOWHERE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


@dataclass(slots=True)
class Bounds:
    """An application that refuses what is too much; a supervisor's question never is."""

    app: ASGIApp
    under_way: Counter[str] = field(default_factory=Counter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse with 503."""
        if scope["path"] == LIVE:
            await self.app(scope, receive, send)
            return
        address = scope["client"][0] if scope["client"] else ""
        if (
            self.under_way.total() >= REQUESTS_MAX
            or self.under_way[address] >= REQUESTS_OF_ADDRESS_MAX
        ):
            refusal = PlainTextResponse("too many requests at once: ask again later\n", 503)
            await refusal(scope, receive, send)
            return
        self.under_way[address] += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.under_way[address] -= 1
            self.under_way += Counter()  # forget addresses of which nothing is under way


@dataclass(slots=True)
class Guard:
    """An application that answers whoever may read.

    `access`: who may now. `names`: those that this port has.
    """

    app: ASGIApp
    access: Callable[[], PortAccess]
    names: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse; health and the page without its contents are for everybody."""
        request = Request(scope)
        path = scope["path"]
        may_read = partial(self._may_read, request)
        scope.setdefault("state", {})[MAY_READ] = may_read
        app: ASGIApp = self.app
        if path not in (LIVE, READY):
            if not is_known_host(request.headers.get("host", ""), self.names):
                app = _UNKNOWN_HOST
            elif path not in PAGE_PATHS and not may_read():
                app = _NOT_ADMITTED
            elif path == ACCESS:
                app = self._admitted(request)
        await app(scope, receive, _with_headers(send))

    def _may_read(self, request: Request) -> bool:
        return self.access().admits(
            request.headers.get("authorization", ""),
            has_certificate=bool(request.scope.get("state", {}).get(CERTIFICATE)),
            cookie=request.cookies.get(_cookie_name(request), ""),
        )

    def _admitted(self, request: Request) -> Response:
        """The answer to a page that may read; with the token it gets a cookie, for EventSource."""
        answer = Response(status_code=204)
        access, given = self.access(), request.headers.get("authorization", "")
        if access.token is not None and access.admits(given, has_certificate=False):
            answer.set_cookie(
                _cookie_name(request),
                access.cookie(),
                httponly=True,
                samesite="strict",
                secure=request.url.scheme == "https",
            )
        return answer


def _cookie_name(request: Request) -> str:
    """A name by the port: a browser gives a machine's cookies to all of its ports."""
    _, port = request.scope.get("server") or ("", 0)
    return f"slackwater_{port}"


def _with_headers(send: Send) -> Send:
    """Send with the headers that no answer may be without."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _KEPT_NOWHERE.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


_UNKNOWN_HOST = PlainTextResponse(
    "this hub has no such name: ask by its address, or add the name to http.names\n", 421
)
_NOT_ADMITTED = PlainTextResponse(
    "give the token of http.token as Authorization: Bearer, or a certificate of http.client_ca\n",
    401,
    headers={"www-authenticate": "Bearer"},
)
