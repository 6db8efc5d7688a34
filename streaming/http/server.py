"""One port in a thread: opened at once, served until it is stopped."""

import errno
import logging
import socket
import ssl
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from streaming.core.model.errors import ConfigError

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

LOG = logging.getLogger("slackwater")

STOP_S = 3.0
"""How long the end of the hub waits for connections; the thread keeps no process alive."""
_BACKLOG = 32

_WHY = {
    errno.EADDRINUSE: "is in use: stop what listens there",
    errno.EACCES: "is not allowed to this user: ports below 1024 are the system's",
    errno.EADDRNOTAVAIL: "is no address of this machine: correct http.host",
}


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; ConfigError says what to do if that cannot be."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        why = _WHY.get(error.errno or 0, f"cannot be listened at: {error.strerror}")
        raise ConfigError(
            f"http.port {port} at {host} {why}, or give another one as http.port; 0 turns it off"
        ) from error


def free_port(host: str, preferred: int) -> int:
    """The preferred port if nothing listens there, else another one that is free."""
    for port in (preferred, 0):
        try:
            with listening(host, port) as found:
                return int(found.getsockname()[1])
        except ConfigError:
            continue
    return 0


class HttpServer:
    """Serves an application at a socket, in a thread of its own.

    What it is made of is imported in that thread, while the hub starts. `tls`: with which
    certificate it answers over TLS.
    """

    def __init__(
        self, at: socket.socket, application: Callable[[], "Starlette"], tls: ssl.SSLContext | None
    ) -> None:
        self._socket, self._tls = at, tls
        self._application = application
        self._server: uvicorn.Server | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)

    @property
    def address(self) -> str:
        """Where it can be reached."""
        host, port = self._socket.getsockname()[:2]
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def start(self) -> None:
        """Start to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving, and wait a little for what is being answered."""
        self._stopped.set()
        if self._server is not None:
            self._server.should_exit = True
        self._thread.join(STOP_S)
        self._socket.close()

    def _serve(self) -> None:
        try:
            self._run()
        except Exception:
            LOG.exception("nothing is served over HTTP any more; the hub goes on")

    def _run(self) -> None:
        import uvicorn  # noqa: PLC0415 see above

        from streaming.http.protocol import BoundedProtocol  # noqa: PLC0415

        tls = self._tls
        config = uvicorn.Config(
            self._application(),
            log_config=None,
            access_log=False,
            lifespan="off",
            http=BoundedProtocol,
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=1,
            loop="streaming.http.protocol:HandshakeLoop",
            ssl_context_factory=None if tls is None else lambda *_: tls,
        )
        logging.getLogger("uvicorn").setLevel(logging.ERROR)  # anybody can send what is no HTTP
        self._server = uvicorn.Server(config)
        self._server.should_exit = self._stopped.is_set()
        self._server.run(sockets=[self._socket])
