"""The port of a hub that runs as a process: it is there early, it goes in time, it ends nothing."""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import Broker
from tests.harness.hub_process import HubProcess
from tests.harness.served_hub import Port, free_port
from tests.harness.site import Site, site


@pytest.fixture
def one(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub of two replicas."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        yield made


def served_at(at: Site, port: int) -> Port:
    """Let the hub of a site serve at a port."""
    text = at.file.read_text().replace("[http]\nport = 0", f"[http]\nport = {port}")
    at.file.write_text(text)
    return Port(port)


def answers(port: Port, hub: HubProcess) -> None:
    """Wait until something listens there."""

    def listens() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port.number)) == 0

    hub.waits_for(listens, "it serves")


def test_a_hub_that_is_starting_is_alive_and_not_ready(one: Site) -> None:
    """A supervisor that restarts it because a broker is away would make it worse."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        port = served_at(one, free_port())
        text = one.file.read_text()
        known = text.split('bootstrap_servers = "')[1].split('"')[0]
        one.file.write_text(text.replace(known, address))
        with one.hub() as hub:
            answers(port, hub)

            live, ready = port.get("/livez"), port.get("/readyz")
            metrics, status = port.get("/metrics"), port.get("/status")

            hub.signal_group(signal.SIGTERM)
            hub.ends_with(0)

    assert live.code == 200
    assert ready.code == 503
    assert ready.document["reasons"] == ["the hub is starting"]
    assert "slackwater_ready 0.0\n" in metrics.text
    assert status.code == 503
    assert "no state in it" in status.document["error"]


def test_a_port_in_use_is_one_line_that_says_what_to_do(one: Site) -> None:
    """Before Spark starts: whoever runs two hubs on one machine sees it at once."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        served_at(one, port)
        with one.hub() as hub:
            output = hub.ends_with(2)

    assert output == (
        f"slackwater: http.port {port} at 127.0.0.1 is in use: stop what listens there, or give"
        " another one as http.port; 0 turns it off\n"
    )


def test_a_log_of_objects_ends_with_an_object(one: Site) -> None:
    """The line that says why the hub ended is the one that matters most to who collects them."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        served_at(one, taken.getsockname()[1])
        one.file.write_text(one.file.read_text().replace('format = "text"', 'format = "json"'))
        with one.hub() as hub:
            (line,) = map(json.loads, hub.ends_with(2).splitlines())

    assert (line["level"], line["hub"]) == ("critical", "hub")
    assert " is in use: stop what listens there" in line["event"]


@pytest.mark.slow
def test_a_hub_loses_its_broker_and_stays_alive(tmp_path: Path, topic_prefix: str) -> None:
    """It says that it is not ready and why, and a signal ends it with a client connected."""
    with (
        Broker.start(tmp_path / "broker") as own,
        site(tmp_path / "hub", own.bootstrap_servers, topic_prefix) as made,
    ):
        port = served_at(made, free_port())
        with made.hub() as hub:
            answers(port, hub)
            hub.waits_for(lambda: port.get("/readyz").code == 200, "it is ready")
            own.stop()
            hub.waits_for(lambda: port.get("/readyz").code == 503, "it is not ready")
            ready, live = port.get("/readyz"), port.get("/livez")
            with port.events() as events:
                next(events)
                hub.terminate()
                code = hub.ends()

    assert live.code == 200
    assert ready.document["reads"]
    assert f"waits for Kafka at {own.bootstrap_servers}" in ready.document["reasons"][0]
    assert code == 0
