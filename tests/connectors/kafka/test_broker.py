"""The embedded broker keeps its data and port, and leaves no process behind."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import HOST, Broker, BrokerError
from connectors.kafka.sink import UpdatesSink
from connectors.kafka.topics import Topics

TOPIC = "slackwater.test"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A broker's folder, in which nothing runs any more when the test is over."""
    yield tmp_path / "broker"
    left = Broker.running(tmp_path / "broker")
    if left:
        left.kill()


def put(broker: Broker, count: int) -> None:
    """Records that are acknowledged when this returns."""
    sink = UpdatesSink(broker.bootstrap_servers, {})
    for number in range(count):
        sink.send(TOPIC, b"%d" % number, b"value")
    sink.flush()
    sink.close()


def state(broker: Broker) -> tuple[dict[str, str], dict[str, int]]:
    """Id and end of the topic."""
    with Topics(broker.bootstrap_servers, {}) as topics:
        topics.ensure([TOPIC], 1000)
        return topics.ids([TOPIC]), topics.end_offsets([TOPIC])


def test_a_restart_keeps_topics_records_and_port(folder: Path) -> None:
    """Clients that know the address go on, and find the same topics with the same ids.

    Neither an orderly end nor a kill loses what was acknowledged: a crashed broker must not be the
    reason for a replica that differs. What a sink was given while the broker is away arrives once.
    """
    with Broker.start(folder) as broker:
        first_address = broker.bootstrap_servers
        ids, _ = state(broker)
        put(broker, 10)

    again = Broker.start(folder)
    assert again.bootstrap_servers == first_address
    assert state(again) == (ids, {TOPIC: 10})
    put(again, 10)
    sink = UpdatesSink(first_address, {})
    sink.send(TOPIC, b"before", b"value")
    sink.flush()
    again.kill()
    sink.send(TOPIC, b"meanwhile", b"value")

    with Broker.start(folder) as broker:
        sink.flush()
        sink.send(TOPIC, b"after", b"value")
        sink.flush()
        sink.close()

        assert broker.bootstrap_servers == first_address
        assert state(broker) == (ids, {TOPIC: 23})


def test_a_folder_has_one_broker_until_that_is_stopped(folder: Path, tmp_path: Path) -> None:
    """`services down` ends what another command started, and `up` twice starts one.

    Two brokers on one data folder would destroy it: .. and links name the same one. After the demo
    or the tests nothing may run on.
    """
    (tmp_path / "beside").mkdir()
    (tmp_path / "link").symlink_to(folder)
    started = Broker.start(tmp_path / "beside" / ".." / "broker")

    again, by_link = Broker.start(folder), Broker.start(tmp_path / "link")
    found = Broker.running(folder)

    assert found is not None
    assert started.pid == again.pid == by_link.pid == found.pid
    assert found.bootstrap_servers == started.bootstrap_servers
    found.stop()
    assert Broker.running(folder) is None
    started.stop()  # once more does no harm
    with pytest.raises(ProcessLookupError):
        os.kill(started.pid, 0)


def test_the_terminals_interrupt_does_not_reach_the_broker(broker: Broker) -> None:
    """Ctrl-C ends the demo in its own order: replicas first, broker last."""
    assert os.getsid(broker.pid) == broker.pid


def test_a_port_in_use_is_one_sentence(folder: Path) -> None:
    """Whoever names a taken port needs no log to see it; nothing is left behind."""
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(BrokerError, match=f"^port {port} is in use: [^\n]*--port$"):
            Broker.start(folder, port=port)

    assert Broker.running(folder) is None


def test_a_broker_that_cannot_start_shows_what_its_log_says(folder: Path) -> None:
    """Only the log knows why; here its data are of another cluster."""
    Broker.start(folder).stop()
    meta = folder / "data" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=", "node.id=7"))

    with pytest.raises(BrokerError, match="node") as refused:
        Broker.start(folder)

    assert str(folder) in str(refused.value)
    assert Broker.running(folder) is None
