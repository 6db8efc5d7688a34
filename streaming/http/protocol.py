"""HTTP as uvicorn reads it, with an end to every wait for a client.

Uvicorn waits for ever for the rest of a request, and for a client that reads nothing; each of these
holds a connection, and enough of them would keep everybody else out.
"""

import asyncio
from collections import Counter
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from streaming.http.guard import CERTIFICATE

REQUEST_S = 5.0
"""How long a request may take until all of it is there."""
UNREAD_S = 30.0
"""How long an answer waits for a client that does not read it."""
WAITING_MAX = 200
"""So many connections may wait for their request; a further one has the oldest of them closed, of
the address that has the most."""

_UNFINISHED = (h11.IDLE, h11.SEND_BODY)


class BoundedProtocol(H11Protocol):
    """A connection that is cut when its client is too slow, or is one of too many."""

    waits: asyncio.TimerHandle | None = None
    """Set while a request is not there yet: what closes the connection then."""
    _answer: asyncio.TimerHandle | None = None
    """Set while an answer is not read."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        has_certificate = tls is not None and bool(tls.getpeercert())
        self.app_state = {**self.app_state, CERTIFICATE: has_certificate}
        self._await_request()
        self._make_room()

    def handle_events(self) -> None:
        """Stop waiting once the request is there, its body included."""
        super().handle_events()
        if self.waits is not None and self.conn.their_state not in _UNFINISHED:
            self.waits.cancel()
            self.waits = None

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        if self.conn.their_state in _UNFINISHED and not self.transport.is_closing():
            self._await_request()

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not read."""
        super().pause_writing()
        self._answer = self.loop.call_later(UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop waiting: it reads."""
        super().resume_writing()
        if self._answer is not None:
            self._answer.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for anything."""
        for timer in (self.waits, self._answer):
            if timer is not None:
                timer.cancel()
        self.waits = None
        super().connection_lost(exc)

    def _await_request(self) -> None:
        if self.waits is None:
            self.waits = self.loop.call_later(REQUEST_S, self.transport.abort)

    def _make_room(self) -> None:
        """Close a waiting connection if too many are; a request that is sent is there soon."""
        waiting = {
            one: one.waits.when()
            for one in self.connections
            if isinstance(one, BoundedProtocol) and one.waits is not None
        }
        if len(waiting) > WAITING_MAX:
            counts = Counter(_address(one) for one in waiting)
            ((most, _),) = counts.most_common(1)
            oldest = min((one for one in waiting if _address(one) == most), key=waiting.__getitem__)
            oldest.transport.abort()


class HandshakeLoop(asyncio.SelectorEventLoop):
    """An event loop whose servers wait for a client's TLS no longer than for its request.

    asyncio waits a minute, before the protocol knows of the connection.
    """

    async def create_server(self, *arguments: Any, **named: Any) -> asyncio.Server:  # noqa: ANN401
        """Create a server as asyncio does."""
        if named.get("ssl") is not None:
            named["ssl_handshake_timeout"] = REQUEST_S
        return await super().create_server(*arguments, **named)


def _address(connection: H11Protocol) -> str:
    return connection.client[0] if connection.client else ""
