"""A hub that runs and does not move ends itself, with all that is needed to find out why."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoints.commit.last_poll import read_poll
from connectors.kafka.embedded.broker import Broker
from streaming.hub.observe.watchdog import HUNG_EXIT_CODE
from tests.harness.commits import last_commit
from tests.harness.hub_process import HubProcess
from tests.harness.site import Site, site
from tests.harness.user_functions import STOP_BROKER, STOPPED_VARIABLE

pytestmark = pytest.mark.more

LIMIT_VARIABLE = "SLACKWATER_HUB__BATCH_TIMEOUT_S"


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker that the test may stop."""
    with Broker.start(tmp_path / "broker") as running:
        yield running
        os.kill(running.pid, signal.SIGCONT)


@pytest.fixture
def pair(
    tmp_path: Path, own_broker: Broker, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    """A hub with two replicas that counts as hanging after twenty seconds."""
    monkeypatch.setenv(LIMIT_VARIABLE, "20")
    monkeypatch.setenv(STOPPED_VARIABLE, str(own_broker.pid))
    bootstrap = own_broker.bootstrap_servers
    with site(tmp_path / "hub", bootstrap, topic_prefix, functions={"t": STOP_BROKER}) as made:
        made.gives_up_soon()
        for one in made.replicas.values():
            one.hello()
        yield made


def has_read_all(at: Site, hub: HubProcess) -> None:
    """Wait until everything is in a committed batch."""

    def is_read() -> bool:
        commit = last_commit(at.state)
        ends = {one.changes: one.ends.end(one.changes) for one in at.replicas.values()}
        return commit is not None and all(commit.offsets.get(t, 0) >= e for t, e in ends.items())

    hub.waits_for(lambda: read_poll(at.state) is not None, "it polls")
    hub.waits_for(is_read, "it has read all")


def test_a_batch_that_a_stopped_broker_holds_up_goes_on_with_it(
    pair: Site, own_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection to a process that is stopped stays open; a restart would wait likewise."""
    monkeypatch.setenv(LIMIT_VARIABLE, "30")
    a, b = pair.replicas.values()
    with pair.hub() as hub:
        has_read_all(pair, hub)
        a.write("row", "a")
        b.write("row", "b")  # in conflict, so the table's function is called, which stops it
        hub.waits_for(lambda: "the hub waits for Kafka at" in hub.output, "it waits")

        os.kill(own_broker.pid, signal.SIGCONT)
        hub.waits_for(lambda: len(pair.slackwater("conflicts", "list")) == 1, "it goes on")
        has_read_all(pair, hub)
        hub.terminate()
        hub.ends_with(0)


def test_a_jvm_that_stands_still(pair: Site) -> None:
    """No batch begins that could take too long; what waits in the topics tells it."""
    a = pair.replicas["a"]
    with pair.hub() as hub:
        has_read_all(pair, hub)
        java = hub.java()
        assert java is not None
        os.kill(java, signal.SIGSTOP)
        a.write("row", "a")

        output = hub.ends_with(HUNG_EXIT_CODE)

    assert "though 1 record can be read" in output
    assert "Full thread dump" not in output


@pytest.mark.slow
def test_an_idle_hub_stays(pair: Site) -> None:
    """It has nothing to do for much longer than a batch may take."""
    with pair.hub() as hub:
        has_read_all(pair, hub)
        commit = last_commit(pair.state)
        assert commit is not None

        def is_long_ago() -> bool:
            poll = read_poll(pair.state)
            return poll is not None and poll.at_ms > commit.at_ms + 25_000

        hub.waits_for(is_long_ago, "it polls, and commits nothing")
        hub.terminate()

        output = hub.ends_with(0)

    assert "batch_timeout_s" not in output
