"""No client keeps others from the port: each wait for one has an end, and each share a bound."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from streaming.http.feed import WATCHERS_MAX
from streaming.http.guard import REQUESTS_OF_ADDRESS_MAX
from streaming.http.protocol import WAITING_MAX
from tests.harness.hub_process import wait_until
from tests.harness.served_port import answer, ask, connected, port_of_a_hub, request

STATUS_LINE = len("HTTP/1.1 200")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a hub that waits for its broker."""
    with port_of_a_hub(tmp_path_factory.mktemp("port")) as number:
        yield number


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ",
        b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\n",
        b"GET /events HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\n",
    ],
)
def test_a_request_that_never_ends_is_cut(port: int, beginning: bytes) -> None:
    """It would hold a connection for as long as its client likes."""
    with connected(port) as client:
        client.sendall(beginning)

        answer(client)  # ends only when the server closes the connection


def test_many_requests_that_never_end_keep_nobody_out(port: int) -> None:
    """A supervisor that gets no answer restarts the hub, which helps nobody."""
    with ExitStack() as opened:
        for _ in range(WAITING_MAX + 20):
            client = opened.enter_context(connected(port))
            client.sendall(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ")

        live, ready = ask(port, "/livez"), ask(port, "/readyz")

    assert live.startswith("HTTP/1.1 200")
    assert "the hub is starting" in ready


def test_event_streams_are_counted_when_they_begin(port: int) -> None:
    """Sixty at once were all let in, because each counted itself only when it was sent."""
    with ExitStack() as opened:
        clients = [opened.enter_context(connected(port)) for _ in range(REQUESTS_OF_ADDRESS_MAX)]
        for client in clients:
            client.sendall(request("/events"))
        lines = [client.recv(STATUS_LINE).decode()[-3:] for client in clients]

    assert (lines.count("200"), lines.count("503")) == (
        WATCHERS_MAX,
        REQUESTS_OF_ADDRESS_MAX - WATCHERS_MAX,
    )


def test_a_stream_that_ended_makes_room(tmp_path: Path) -> None:
    """Who closes the page may open it again."""
    with port_of_a_hub(tmp_path) as port:
        for _ in range(WATCHERS_MAX + 1):
            with connected(port) as client:
                client.sendall(request("/events"))
                client.recv(STATUS_LINE)

        def is_let_in() -> bool:
            with connected(port) as client:
                client.sendall(request("/events"))
                return client.recv(STATUS_LINE).endswith(b"200")

        wait_until(is_let_in, lambda: "there is room again")
