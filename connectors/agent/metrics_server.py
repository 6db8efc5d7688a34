"""A port with metrics, for whoever may read: over TLS, by a token or by a client's certificate."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from connectors.tls import server_context
from streaming.core.model.port_access import PortAccess

REQUEST_S = 5.0
"""How long a client may take between two parts of its request."""
_CERTIFICATE = "slackwater.has_certificate"

Respond = Callable[..., Any]


@contextmanager
def metrics_served(
    registry: CollectorRegistry, host: str, port: int, access: PortAccess
) -> Iterator[None]:
    """Serve them as long as the block takes; OSError if that cannot be."""
    metrics, context = make_wsgi_app(registry), server_context(access)

    def app(environ: dict[str, Any], respond: Respond) -> Iterable[bytes]:
        given = environ.get("HTTP_AUTHORIZATION", "")
        if access.admits(given, has_certificate=environ[_CERTIFICATE]):
            body: Iterable[bytes] = metrics(environ, respond)
            return body
        respond("401 Unauthorized", [("www-authenticate", "Bearer")])
        return [b"give the token of http.token, or a certificate of http.client_ca\n"]

    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    kind: type[_Server] = type("_Server", (_Server,), {"address_family": family})
    with make_server(str(address[0]), port, app, kind, _Handler) as server:
        if context is not None:  # without a handshake here: one client would keep out all others
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each connection."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing of a client that sends what is no request."""


class _Handler(WSGIRequestHandler):
    """A request, with what is known of its client."""

    timeout = REQUEST_S

    def get_environ(self) -> dict[str, Any]:
        """The request, and whether the client has shown a certificate."""
        shown = isinstance(self.connection, ssl.SSLSocket) and bool(self.connection.getpeercert())
        return {**super().get_environ(), _CERTIFICATE: shown}

    def log_message(self, *_: object) -> None:
        """Log nothing: whoever reaches the port could fill the log."""
