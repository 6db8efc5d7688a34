"""How much is answered at once, in all and to one address; whether the process lives, always."""

from collections import Counter
from dataclasses import dataclass, field

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

REQUESTS_MAX = 100
REQUESTS_OF_ADDRESS_MAX = 50
LIVE = "/livez"


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
