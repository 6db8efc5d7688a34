"""The port of a hub that is starting, in this process, and raw connections to it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.config.sources.live import live_access
from streaming.config.sources.load import load
from streaming.hub.observe.served import served
from streaming.hub.observe.view import HubView
from tests.harness.hub_process import wait_until
from tests.harness.served_hub import free_port

_TEXT = """
[kafka]
bootstrap_servers = "localhost:1"
[http]
port = {port}
{http}
[[replicas]]
name = "a"
rid = 1
[[tables]]
name = "t"
key = ["k"]
columns = {{ k = "text" }}
"""


@contextmanager
def port_of_a_hub(folder: Path, http: str = "") -> Iterator[int]:
    """The port that a hub serves with these settings of [http], once it is served."""
    port, file = free_port(), folder / "hub.toml"
    file.write_text(_TEXT.format(port=port, http=http))

    def answers() -> bool:
        with connected(port) as client:
            client.sendall(b"\r\n")
            return True

    config = load(file)
    with served(HubView(config), live_access(file, config)):
        wait_until(answers, lambda: "the port is served")
        yield port


def connected(port: int) -> socket.socket:
    """A connection to it, which waits a minute for anything."""
    return socket.create_connection(("127.0.0.1", port), 60)


def request(path: str, *headers: str, method: str = "GET") -> bytes:
    """A whole request, behind which the server closes the connection."""
    lines = [f"{method} {path} HTTP/1.1", *headers, "connection: close"]
    if not any(line.lower().startswith("host:") for line in headers):
        lines.insert(1, "host: 127.0.0.1")
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


def answer(client: socket.socket) -> str:
    """All that comes until the server closes; nothing where it cuts the connection."""
    parts = []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts).decode()


def ask(port: int, path: str, *headers: str, method: str = "GET") -> str:
    """The whole answer to a request: status line, headers, body."""
    with connected(port) as client:
        client.sendall(request(path, *headers, method=method))
        return answer(client)
