"""Claims about the metrics of an agent."""

import socket
import time
import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest
from prometheus_client.parser import text_string_to_metric_families

from connectors.agent.metrics import METRICS, AgentCounts, served_metrics
from connectors.live_value import LiveAccess
from connectors.metrics_server import CONNECTIONS_MAX
from streaming.core.access.port_access import PortAccess
from streaming.core.model.errors import ConfigError
from streaming.metrics.catalogue import HUB_METRICS


@pytest.fixture
def port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def test_it_exposes_exactly_what_its_page_lists(port: int) -> None:
    """Each value is that of the moment of the scrape, and names its replica."""
    counts = AgentCounts(published=7, backlog=3, items=5)

    with served_metrics(port, "oslo", counts):
        counts.published += 1
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()

    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    values = {one.name: one.value for one in samples}
    assert set(values) == {one.name for one in METRICS}
    assert all(one.labels == {"replica": "oslo"} for one in samples)
    assert values["slackwater_agent_published_total"] == 8
    assert values["slackwater_agent_journal_backlog"] == 3
    assert values["slackwater_agent_items_total"] == 5


def test_without_a_port_nothing_listens(port: int) -> None:
    """Two agents on one machine need no configuration."""
    with served_metrics(0, "oslo", AgentCounts()), socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", port)) != 0


def test_a_port_in_use_says_what_to_do() -> None:
    """It is given by hand, for each agent another one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])

        with (
            pytest.raises(ConfigError, match="give another --metrics-port"),
            served_metrics(port, "oslo", AgentCounts()),
        ):
            pass


def test_no_name_is_one_of_the_hubs() -> None:
    """One Prometheus scrapes both."""
    assert {one.name for one in METRICS}.isdisjoint(one.name for one in HUB_METRICS)


def test_an_address_that_others_reach_asks_for_the_token(port: int) -> None:
    """The rule is that of the hub's port."""
    url, token = f"http://127.0.0.1:{port}/metrics", "a-token-that-nobody-guesses"
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {token}"})

    with served_metrics(port, "oslo", AgentCounts(), "0.0.0.0", LiveAccess(PortAccess(token))):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(url)
        with urllib.request.urlopen(request) as answer:
            text = answer.read().decode()

    assert "slackwater_agent_batches_total" in text


def test_an_address_that_others_reach_is_not_opened_without_one(port: int) -> None:
    """What an agent counts tells of a site's work."""
    with (
        pytest.raises(ConfigError, match="is reached from other machines"),
        served_metrics(port, "oslo", AgentCounts(), "0.0.0.0"),
    ):
        pass


@pytest.mark.parametrize(
    ("host", "code"), [("evil.example", 421), ("Oslo.example:9471", 200), ("localhost", 200)]
)
def test_it_answers_only_under_a_name_that_it_has(port: int, host: str, code: int) -> None:
    """A page of somebody else's may let its own name point here, and a browser then asks for it."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"host": host})
    readers = LiveAccess(PortAccess(names=("oslo.example",)))

    with served_metrics(port, "oslo", AgentCounts(), readers=readers):
        assert _status(request) == code


def test_clients_that_say_nothing_hold_up_no_other_for_long(port: int) -> None:
    """More of them than are answered at once are closed, and the next one is answered again."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics")

    with served_metrics(port, "oslo", AgentCounts()):
        with ExitStack() as opened:
            for _ in range(CONNECTIONS_MAX):
                opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            with socket.create_connection(("127.0.0.1", port), timeout=60) as one_more:
                assert one_more.recv(1) == b""
        deadline = time.monotonic() + 60
        while _status(request) != 200:
            assert time.monotonic() < deadline


def _status(request: urllib.request.Request) -> int:
    """The status of an answer; 0: the connection was closed."""
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0
