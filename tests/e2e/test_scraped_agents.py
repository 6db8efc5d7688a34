"""Agents at work tell what they do: a journal that does not shrink is lost with its database."""

import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from connectors.agent.metrics import METRICS
from connectors.kafka.embedded.broker import Broker
from tests.harness.served_hub import Port, free_port
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import at_work, create, execute, rows


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas, whose databases are there and empty."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        for name in "ab":
            create(made, name)
        yield made


def values(port: int) -> dict[str, float]:
    """What an agent exposes now."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {one.name: one.value for family in families for one in family.samples}


def test_a_token_that_is_configured_later_closes_the_port_of_an_agent(
    pair: Site, spark: SparkSession
) -> None:
    """It is read again while the agent works, by the file that `slackwater agent` was given."""
    token, port = "a-token-that-nobody-guesses", free_port()
    with (
        pair.running(spark) as hub,
        at_work(pair, "a", "--metrics-port", str(port)),
    ):
        hub.waits_for(lambda: pair.replica_states()["a"] == "live", "it is live")
        before = Port(port).get("/metrics").code
        text = pair.file.read_text()
        pair.file.write_text(text.replace("[http]\n", f'[http]\ntoken = "{token}"\n'))
        hub.waits_for(lambda: Port(port).get("/metrics").code == 401, "it asks for the token")

        assert (before, Port(port, token).get("/metrics").code) == (200, 200)


def test_agents_at_work_expose_what_their_page_lists(pair: Site, spark: SparkSession) -> None:
    """What one publishes the other applies, and both know how far they are."""
    ports = {name: free_port() for name in "ab"}
    with pair.running(spark) as hub, ExitStack() as agents:
        for name, port in ports.items():
            agents.enter_context(at_work(pair, name, "--metrics-port", str(port)))
        hub.waits_for(lambda: pair.replica_states() == {"a": "live", "b": "live"}, "both are live")
        for number in range(10):
            execute(pair, "a", "INSERT INTO t VALUES (?, 'of a')", f"k{number}")
        hub.waits_for(lambda: len(rows(pair, "b")) == 10, "b has the rows")
        hub.waits_for(lambda: bool(pair.slackwater("level")["level"]), "all are level")

        def covers() -> set[float]:
            return {values(port)["slackwater_agent_covers_epoch"] for port in ports.values()}

        hub.waits_for(lambda: covers() == {pair.slackwater("status")["hub_epoch"]}, "both cover it")
        of_a, of_b = (values(port) for port in ports.values())

    assert set(of_a) == set(of_b) == {one.name for one in METRICS}
    assert of_a["slackwater_agent_published_total"] >= 10
    assert of_b["slackwater_agent_items_total"] >= 10
    assert of_a["slackwater_agent_journal_backlog"] == 0
    assert [one["slackwater_agent_sessions_total"] for one in (of_a, of_b)] == [1, 1]
    assert [one["slackwater_agent_refused_total"] for one in (of_a, of_b)] == [0, 0]
