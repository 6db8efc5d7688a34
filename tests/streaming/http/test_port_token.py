"""A token that is replaced while its port is served, by a hub and by an agent."""

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from connectors import live_value
from connectors.agent.metrics import AgentCounts, served_metrics
from streaming.config.sources.live import live_access
from streaming.config.sources.load import load
from tests.harness.served_hub import free_port
from tests.harness.served_port import answer, ask, connected, port_of_a_hub, request

OLD, NEW = "a-token-that-nobody-guesses", "another-that-nobody-guesses"
OpenPort = Callable[[Path], AbstractContextManager[int]]


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The secret file of the token; each question looks at it."""
    monkeypatch.setattr(live_value, "LOOK_S", 0.0)
    folder = tmp_path / "secrets"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("SLACKWATER_SECRETS", str(folder))
    file = folder / "SLACKWATER_HTTP__TOKEN"
    write(file, OLD)
    return file


def write(file: Path, token: str) -> None:
    """Put another file in its place, as tools do that rotate secrets."""
    new = file.with_name(f".new-{file.name}")
    new.write_text(token)
    new.replace(file)


@contextmanager
def hub_port(folder: Path) -> Iterator[int]:
    """The hub's, which others reach."""
    with port_of_a_hub(folder, 'host = "0.0.0.0"') as port:
        yield port


@contextmanager
def agent_port(folder: Path) -> Iterator[int]:
    """An agent's, by the same configuration."""
    with port_of_a_hub(folder):
        file, port = folder / "hub.toml", free_port()
        readers = live_access(file, load(file))
        with served_metrics(port, "oslo", AgentCounts(), "0.0.0.0", readers):
            yield port


def asked(port: int, token: str) -> int:
    """The status of an answer to who has this token."""
    bearer = {"authorization": f"Bearer {token}"}
    question = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=bearer)
    try:
        with urllib.request.urlopen(question, timeout=60) as found:
            return int(found.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("opened", [hub_port, agent_port])
def test_a_new_token_admits_and_the_old_one_does_not(
    tmp_path: Path, secret: Path, opened: OpenPort
) -> None:
    """Whoever knows the old one keeps nothing by it, and nobody has to restart anything."""
    with opened(tmp_path) as port:
        before = asked(port, OLD), asked(port, NEW)
        write(secret, NEW)

        assert before == (200, 401)
        assert (asked(port, OLD), asked(port, NEW)) == (401, 200)


@pytest.mark.parametrize("opened", [hub_port, agent_port])
def test_a_token_that_is_taken_away_or_half_written_changes_nothing(
    tmp_path: Path, secret: Path, opened: OpenPort, caplog: pytest.LogCaptureFixture
) -> None:
    """A port must not be open to everybody for the moment in which a file is replaced."""
    with opened(tmp_path) as port:
        secret.write_text("short")
        half = asked(port, "short"), asked(port, OLD)
        secret.unlink()
        gone = asked(port, ""), asked(port, OLD)
        write(secret, NEW)

        assert (half, gone) == ((401, 200), (401, 200))
        assert asked(port, NEW) == 200
    assert "http.token cannot be read again, so the old one stays: http.token: give" in caplog.text
    assert "so the old one stays: it was taken away" in caplog.text
    assert OLD not in caplog.text


def test_a_new_token_ends_cookies_and_what_is_being_watched(tmp_path: Path, secret: Path) -> None:
    """The page asks for the new one: its stream ends, and is not taken up again."""
    with hub_port(tmp_path) as port:
        given = ask(port, "/access", f"authorization: Bearer {OLD}")
        cookie = next(line for line in given.split("\r\n") if line.startswith("set-cookie: "))
        has_cookie = f"cookie: {cookie.removeprefix('set-cookie: ').split(';')[0]}"
        before = ask(port, "/metrics", has_cookie)
        with connected(port) as client:
            client.sendall(request("/events", has_cookie))
            first = client.recv(12).decode()
            write(secret, NEW)
            answer(client)  # ends only when the server closes the connection

        assert "200" in before.split("\r\n")[0]
        assert first == "HTTP/1.1 200"
        assert "401" in ask(port, "/events", has_cookie).split("\r\n")[0]


def test_a_port_without_a_token_takes_one(
    tmp_path: Path, secret: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is closed at once, and not opened again by its being taken away."""
    secret.unlink()
    with port_of_a_hub(tmp_path) as port:
        before = asked(port, "")
        write(secret, NEW)

        assert (before, asked(port, ""), asked(port, NEW)) == (200, 401, 200)
        secret.unlink()
        assert (asked(port, ""), asked(port, NEW)) == (401, 200)
    assert "it was taken away" in caplog.text
