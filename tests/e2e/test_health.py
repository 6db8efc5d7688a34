"""A hub that is ill says so: in its log, in `level` and in `status`."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoints.commit.last_poll import read_poll
from connectors.kafka.embedded.broker import Broker
from tests.harness.commits import last_commit
from tests.harness.hub_process import HubProcess
from tests.harness.site import Site, site

OF_THE_HUB = re.compile(r"[\d-]+T[\d:.]+Z slackwater (INFO|WARNING) ")
OF_JAVA = "WARNING: Using incubator modules: jdk.incubator.vector"
"""The one line that the JVM writes before it reads any configuration."""


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker that the test may stop."""
    with Broker.start(tmp_path / "broker") as running:
        yield running


@pytest.fixture
def pair(tmp_path: Path, own_broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas."""
    with site(tmp_path / "hub", own_broker.bootstrap_servers, topic_prefix, "ab") as made:
        made.gives_up_soon()
        yield made


def bring_level(at: Site, hub: HubProcess) -> None:
    """Let both replicas say hello and acknowledge everything, and the hub read that."""
    for one in at.replicas.values():
        one.hello()

    def is_level() -> bool:
        for one in at.replicas.values():
            one.catch_up()
        return bool(at.slackwater("level", "--max-age", "60")["level"])

    hub.waits_for(lambda: read_poll(at.state) is not None, "it polls")
    hub.waits_for(lambda: last_commit(at.state) is not None, "it commits")
    hub.waits_for(is_level, "it is level")


@pytest.mark.more
def test_a_hub_without_its_broker_is_not_level(
    pair: Site, own_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes wait in journals that nobody sees; and the log has no line of Spark's."""
    monkeypatch.setenv("SLACKWATER_HUB__TRIGGER_MS", "1")  # each batch takes longer than that
    a = pair.replicas["a"]
    with pair.hub() as hub:
        bring_level(pair, hub)
        a.ends.send(a.changes, "a", b'{"kind":"heartbeat"')
        hub.waits_for(lambda: "1 record quarantined" in hub.output, "bad input is in its log")
        differing = pair.slackwater("level", "--max-age", "60")
        quiet = hub.output

        own_broker.stop()
        hub.waits_for(lambda: "no answer from Kafka" in hub.output, "the outage is in its log")
        down = pair.slackwater("level", "--max-age", "60")

    assert (differing["unnamed"], differing["apart"]) == ({"a": {"json": 1}}, True)
    assert not differing["level"]
    assert "Kafka at" in down["cannot_say"][0]
    assert not down["level"]
    assert " INFO ready at hub epoch 0" in quiet
    assert " INFO replica a: silent -> live\n" in quiet
    assert " INFO agreement b: waiting_for_hello -> in_sync\n" in quiet
    lines = [line for line in quiet.splitlines() if not OF_THE_HUB.match(line)]
    assert [line for line in lines if line != OF_JAVA] == []
