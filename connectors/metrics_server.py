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

from connectors.live_value import LiveAccess
from connectors.tls import server_context
from streaming.core.access.port_access import is_known_host, is_loopback
from streaming.core.model.errors import ConfigError

REQUEST_S = 5.0
"""How long a client may take between two parts of its request."""
CONNECTIONS_MAX = 32
"""So many clients are answered at once; the next one's connection is closed."""
_CERTIFICATE = "slackwater.has_certificate"

Respond = Callable[..., Any]
Connection = Any
"""What socketserver says of a client: its socket, its address."""


@contextmanager
def metrics_served(
    registry: CollectorRegistry, host: str, port: int, access: LiveAccess
) -> Iterator[None]:
    """Serve them as long as the block takes; ConfigError says why that cannot be."""
    metrics, context = make_wsgi_app(registry), server_context(access.latest)
    names = access.latest.known_as(host, socket.gethostname())

    def app(environ: dict[str, Any], respond: Respond) -> Iterable[bytes]:
        if not is_known_host(environ.get("HTTP_HOST", ""), names):
            respond("421 Misdirected Request", [])
            return [b"this port has no such name: ask by its address, or add it to http.names\n"]
        given = environ.get("HTTP_AUTHORIZATION", "")
        if access.now().admits(given, has_certificate=environ[_CERTIFICATE]):
            body: Iterable[bytes] = metrics(environ, respond)
            return body
        respond("401 Unauthorized", [("www-authenticate", "Bearer")])
        return [b"give the token of http.token, or a certificate of http.client_ca\n"]

    with _listening(host, port, app) as server:
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


def _listening(host: str, port: int, app: Callable[..., Any]) -> "_Server":
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]

        class Server(_Server):
            address_family = family
            free = threading.Semaphore(CONNECTIONS_MAX)

        return make_server(str(address[0]), port, app, Server, _Handler)
    except OSError as error:
        other = "" if is_loopback(host) else ", or an address of this machine as --metrics-host"
        raise ConfigError(
            f"metrics cannot be served at {host}:{port} ({error.strerror}): give another"
            f" --metrics-port, or none{other}"
        ) from error


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each connection."""

    daemon_threads = True
    free: threading.Semaphore
    """How many more are answered at once."""

    def verify_request(self, *_: object) -> bool:
        """Return whether this one is answered; else its connection is closed."""
        return self.free.acquire(blocking=False)

    def process_request_thread(self, request: Connection, client_address: Connection) -> None:
        """Answer, in that thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()

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
