"""A hub is stopped by a signal to its process group, as a terminal and systemd send it."""

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoints.commit.lock import only_hub
from connectors.kafka.embedded.broker import Broker
from tests.harness.hub_process import HubProcess, wait_until
from tests.harness.site import Site, site


def _ends_in_order(hub: HubProcess, number: signal.Signals) -> str:
    """The output of a hub that ends after this signal to its group; its JVM ends with it."""
    java = hub.java()

    hub.signal_group(number)

    output = hub.ends_with(0)
    assert "Traceback" not in output
    assert "py4j" not in output
    if java is not None:
        wait_until(lambda: not Path(f"/proc/{java}/cmdline").exists(), lambda: "its JVM ends")
    return output


@pytest.fixture
def one(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub of two replicas that have written."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        for replica in made.replicas.values():
            replica.hello()
            replica.write("row", replica.name)
        yield made


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_while_python_imports(number: signal.Signals, one: Site) -> None:
    """The first instant counts too: nobody waits with Ctrl-C."""
    with one.hub() as hub:
        hub.waits_for(lambda: hub.catches(signal.SIGTERM), "it has handlers")

        _ends_in_order(hub, number)


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM]
)
def test_while_the_jvm_starts(number: signal.Signals, one: Site) -> None:
    """Spark takes seconds to start, and has no handler yet."""
    with one.hub() as hub:
        hub.waits_for(lambda: hub.java() is not None, "its JVM is there")

        _ends_in_order(hub, number)


def test_while_it_waits_for_a_broker(one: Site) -> None:
    """A hub that finds no broker must not have to be killed."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        text = one.file.read_text()
        start = text.index("bootstrap_servers")
        end = text.index("\n", start)
        address = f'bootstrap_servers = "127.0.0.1:{deaf.getsockname()[1]}"'
        one.file.write_text(text[:start] + address + text[end:])
        with one.hub() as hub:
            deaf.settimeout(240)
            connection, _ = deaf.accept()

            _ends_in_order(hub, signal.SIGINT)
            connection.close()


@pytest.mark.parametrize(
    ("point", "number"),
    [
        pytest.param("after_plan", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("before_commit", signal.SIGINT, marks=pytest.mark.slow),
        ("between_agreements", signal.SIGTERM),
    ],
)
def test_within_a_batch(number: signal.Signals, one: Site, point: str) -> None:
    """The batch is completed: the next start has nothing to finish."""
    with one.hub(fault=f"stop:{point}") as hub:
        hub.is_stopped_after(point)
        hub.signal_group(number)
        hub.go_on()

        output = _ends_in_order(hub, number)

    assert "stopped after batch 1" in output


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM]
)
def test_while_it_is_idle(number: signal.Signals, one: Site) -> None:
    """A hub that waits for input, and brings `rows` up to date in the background."""
    one.file.write_text(
        one.file.read_text().replace("[limits]\n", "[limits]\nmaterialize_every_epochs = 1\n")
    )
    with one.hub() as hub:
        hub.waits_for(lambda: len(one.updates("a")) > 0, "its first batch")

        _ends_in_order(hub, number)


def test_a_second_hub_is_refused_before_it_starts_java(one: Site) -> None:
    """At once, by name, and without a word of Spark's."""
    with only_hub(one.state), one.hub() as second:
        output = second.ends_with(1)

    assert "the hub with process id" in output
    assert len(output.splitlines()) == 1
