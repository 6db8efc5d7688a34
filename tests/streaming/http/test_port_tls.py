"""The ports of hub and agent over TLS: a client's certificate admits as a token does."""

import shutil
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from connectors.agent.metrics import AgentCounts, served_metrics
from connectors.live_value import LiveAccess
from streaming.core.access.port_access import PortAccess
from tests.harness.served_hub import free_port
from tests.harness.served_port import answer, connected, port_of_a_hub
from tests.harness.tls_files import authority, certificate

OpenPort = Callable[[Path, Path], AbstractContextManager[int]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority `ca`, its certificates `hub` and `reader`, and a `stranger` of another one."""
    made = tmp_path_factory.mktemp("tls")
    ca, other = authority(made, "ca"), authority(made, "other")
    for name, by in (("hub", ca), ("reader", ca), ("stranger", other)):
        certificate(made, name, by)
    return made


@contextmanager
def hub_port(folder: Path, tmp_path: Path) -> Iterator[int]:
    """The hub's."""
    files = {"certificate": "hub.crt", "key": "hub.key", "client_ca": "ca.crt"}
    lines = (f'{name} = "{folder / file}"' for name, file in files.items())
    with port_of_a_hub(tmp_path, "\n".join(['host = "0.0.0.0"', *lines])) as port:
        yield port


@contextmanager
def agent_port(folder: Path, _: Path) -> Iterator[int]:
    """An agent's."""
    port = free_port()
    access = PortAccess(None, folder / "hub.crt", folder / "hub.key", folder / "ca.crt")
    with served_metrics(port, "oslo", AgentCounts(), "0.0.0.0", LiveAccess(access)):
        yield port


def asked(folder: Path, port: int, path: str, client: str | None) -> int:
    """The status of an answer to a client with this certificate; 0: it got none."""
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    if client is not None:
        context.load_cert_chain(folder / f"{client}.crt", folder / f"{client}.key")
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}{path}", context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@pytest.mark.parametrize("opened", [hub_port, agent_port])
def test_a_certificate_of_the_authority_admits(
    folder: Path, tmp_path: Path, opened: OpenPort
) -> None:
    """Nobody else reads, and nothing is sent in clear."""
    with opened(folder, tmp_path) as port:
        codes = {who: asked(folder, port, "/metrics", who) for who in (None, "reader", "stranger")}
        with pytest.raises(OSError):  # noqa: PT011 - without TLS nothing is understood
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60)

    assert codes == {None: 401, "reader": 200, "stranger": 0}


def test_a_supervisor_needs_no_certificate(folder: Path, tmp_path: Path) -> None:
    """A probe has none to show."""
    with hub_port(folder, tmp_path) as port:
        assert asked(folder, port, "/livez", None) == 200


@pytest.mark.parametrize("open_port", [hub_port, agent_port])
def test_a_certificate_that_is_replaced_is_shown_from_then_on(
    folder: Path, tmp_path: Path, open_port: OpenPort
) -> None:
    """It expires once a year, and the hub must not have to be restarted for that."""
    for file in ("hub.crt", "hub.key", "ca.crt", "ca.key"):
        shutil.copy(folder / file, tmp_path / file)

    def shown() -> str:
        return ssl.get_server_certificate(("127.0.0.1", port))

    with open_port(tmp_path, tmp_path) as port:
        before = shown()
        (tmp_path / "hub.key").write_text("half of it")
        assert shown() == before
        certificate(tmp_path, "hub", tmp_path / "ca.crt")

        assert shown() == (tmp_path / "hub.crt").read_text() != before


@pytest.mark.parametrize("open_port", [hub_port, agent_port])
def test_a_client_that_never_speaks_tls_is_cut(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_port: OpenPort
) -> None:
    """It would hold a connection that no bound counts."""
    monkeypatch.setattr("streaming.http.protocol.REQUEST_S", 0.5)
    monkeypatch.setattr("connectors.metrics_server._Handler.timeout", 0.5)
    with open_port(folder, tmp_path) as port, connected(port) as client:
        client.sendall(b"\x16\x03")

        answer(client)  # ends only when the server closes the connection
