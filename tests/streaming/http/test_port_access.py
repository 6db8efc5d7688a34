"""Who may read the port: a token, a cookie that stands for it, or a client's certificate."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.cli.main import main
from streaming.core.access.port_access import is_known_host
from streaming.core.model.errors import ConfigError
from tests.harness.served_port import ask, port_of_a_hub

TOKEN = "a-token-that-nobody-guesses"
BEARER = f"authorization: Bearer {TOKEN}"
PAGE = ("/", "/console.js", "/console.css", "/icon.svg")
HELD = ("/metrics", "/status", "/conflicts", "/events", "/access")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a hub that is reached from everywhere, by a token."""
    settings = f'host = "0.0.0.0"\ntoken = "{TOKEN}"\nnames = ["hub.example.com"]'
    with port_of_a_hub(tmp_path_factory.mktemp("port"), settings) as number:
        yield number


def code(answer: str) -> int:
    """The status of an answer."""
    return int(answer.split(" ", 2)[1])


@pytest.mark.parametrize("path", HELD)
@pytest.mark.parametrize(
    "header",
    [
        "x: y",
        "authorization: Bearer",
        "authorization: Bearer None",
        f"authorization: Bearer {TOKEN[:-1]}",
        f"authorization: Basic {TOKEN}",
        "authorization: Bearer \xe9\xff",
        "cookie: slackwater=1",
    ],
)
def test_without_the_token_nothing_is_told(port: int, path: str, header: str) -> None:
    """The answers hold what is in the rows of conflicts."""
    answer = ask(port, path, header)

    assert code(answer) == 401
    assert "www-authenticate: Bearer" in answer


@pytest.mark.parametrize("path", ["/metrics", "/status", "/conflicts"])
def test_answers_are_kept_by_nobody(port: int, path: str) -> None:
    """With the token they come, and neither a cache nor a guess of their type may have them."""
    answer = ask(port, path, BEARER)

    assert code(answer) in (200, 503)
    assert "cache-control: no-store\r\n" in answer
    assert "x-content-type-options: nosniff\r\n" in answer


def test_health_is_for_everybody_and_its_reasons_are_not(port: int) -> None:
    """A supervisor has no token; a reason names brokers and replicas."""
    live, ready, known = (
        ask(port, "/livez"),
        ask(port, "/readyz"),
        ask(port, "/readyz", BEARER),
    )

    assert code(live) == 200
    assert code(ready) == 503
    assert ready.endswith('{"ready": false}\n')
    assert "the hub is starting" in known


@pytest.mark.parametrize("path", PAGE)
def test_the_page_comes_without_a_token(port: int, path: str) -> None:
    """It asks for one, and holds nothing itself."""
    assert code(ask(port, path)) == 200


def test_a_page_changes_the_token_into_a_cookie(port: int) -> None:
    """EventSource sends no header; the cookie goes to no script and to no other site."""
    answer = ask(port, "/access", BEARER)
    cookie = next(line for line in answer.split("\r\n") if line.startswith("set-cookie: "))
    value, *flags = cookie.removeprefix("set-cookie: ").split("; ")

    admitted = ask(port, "/metrics", f"cookie: {value}")
    forged = ask(port, "/metrics", f"cookie: {value[:-1]}")

    assert code(answer) == 204
    assert {flag.lower() for flag in flags} == {"httponly", "path=/", "samesite=strict"}
    assert TOKEN not in cookie
    assert (code(admitted), code(forged)) == (200, 401)


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:9470", True),
        ("[::1]:9470", True),
        ("[::1]", True),
        ("localhost:9470", True),
        ("hub.example.com", True),
        ("HUB.example.com.:9470", True),
        ("evil.example.com", False),
        ("evil.example.com:9470", False),
        ("localhost.evil.example.com", False),
        ("127.0.0.1.evil.example.com", False),
        ("[evil]", False),
        ("", False),
        ("a:b:c", False),
    ],
)
def test_a_host_is_an_address_or_a_name_that_is_known(host: str, *, is_known: bool) -> None:
    """Somebody's page would otherwise read the port under a name that it lets point here."""
    assert is_known_host(host, frozenset({"hub.example.com"})) is is_known


@pytest.mark.parametrize("path", ["/", *HELD])
def test_a_name_that_is_not_known_is_refused(port: int, path: str) -> None:
    """Also with the token."""
    assert code(ask(port, path, "host: evil.example.com", BEARER)) == 421


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('host = "0.0.0.0"', "http.host = '0.0.0.0' is reached from other machines: give http.tok"),
        ('host = "::"', "is reached from other machines"),
        ('host = "192.0.2.7"', "is reached from other machines"),
        ('host = "hub.example.com"', "is reached from other machines"),
        ('host = "0.0.0.0"\ntoken = "short"', "http.token: give at least 16"),
        ('token = ""', "http.token: give at least 16"),
        ('certificate = "x.pem"', "http.certificate and http.key: give both"),
        ('client_ca = "x.pem"', "http.client_ca: clients have certificates over TLS only"),
        ('certificate = "x.pem"\nkey = "y.pem"', "x.pem, .*y.pem.*No such file"),
    ],
)
def test_a_port_that_everybody_could_read_is_not_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: str, says: str
) -> None:
    """Whoever opens it to a network says who may read; `config check` refuses the same."""
    with pytest.raises(ConfigError, match=says) as refused, port_of_a_hub(tmp_path, settings):
        pass

    code = main(["config", "check", "--config", str(tmp_path / "hub.toml")])
    assert code == 2
    assert str(refused.value) in capsys.readouterr().err
