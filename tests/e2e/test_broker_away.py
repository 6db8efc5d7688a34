"""A hub without its broker: it waits, says for which and since when, and goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoints.commit.faults import FaultPoint
from checkpoints.commit.last_poll import read_poll
from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from tests.harness import verdict
from tests.harness.commits import last_commit
from tests.harness.hub_process import HubProcess
from tests.harness.site import Site, site

pytestmark = pytest.mark.more


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of a broker that the test stops and starts."""
    folder = tmp_path / "broker"
    yield folder
    running = Broker.running(folder)
    if running is not None:
        running.kill()


@pytest.fixture
def pair(tmp_path: Path, folder: Path, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas, whose broker is started."""
    bootstrap = Broker.start(folder).bootstrap_servers
    with site(tmp_path / "hub", bootstrap, topic_prefix, "ab") as made:
        made.gives_up_soon()
        yield made


def waits(hub: HubProcess, times: int) -> None:
    """Wait until the hub has said so often that it waits."""
    hub.waits_for(lambda: hub.output.count("the hub waits for Kafka at") >= times, "it waits")


def takes(at: Site, hub: HubProcess) -> None:
    """Wait until everything that the replicas have sent is in a committed batch."""

    def is_taken() -> bool:
        commit = last_commit(at.state) if read_poll(at.state) is not None else None
        ends = {one.changes: one.ends.end(one.changes) for one in at.replicas.values()}
        return commit is not None and all(commit.offsets.get(t, 0) >= e for t, e in ends.items())

    hub.waits_for(is_taken, "it has taken everything")


def brings(at: Site, hub: HubProcess) -> None:
    """Wait until both replicas have applied and acknowledged everything."""

    def is_level() -> bool:
        for one in at.replicas.values():
            one.catch_up()
        return bool(at.slackwater("level", "--max-age", "60")["level"])

    hub.waits_for(is_level, "it is level")


@pytest.mark.parametrize(
    "point",
    [FaultPoint.AFTER_PLAN, pytest.param(FaultPoint.AFTER_COMMIT, marks=pytest.mark.slow)],
)
@pytest.mark.more
def test_a_hub_waits_for_its_broker_and_goes_on(
    pair: Site, folder: Path, point: FaultPoint
) -> None:
    """At its start and within a batch, for as long as that takes; nothing is lost or sent twice.

    What was planned is judged, what was committed is published, each once.
    """
    a, b = pair.replicas.values()
    for one in (a, b):
        one.hello()
    a.write("k", "before")
    Broker.start(folder).stop()
    with pair.hub(fault=f"stop:{point}") as hub:
        waits(hub, 1)
        Broker.start(folder)
        hub.is_stopped_after("its plan or commit")
        a.write("k", "sent")
        Broker.start(folder).kill()
        hub.go_on()
        waits(hub, 2)
        down = pair.slackwater("status")["stale"]
        level = pair.slackwater("level")

        Broker.start(folder)
        b.write("j", "since")
        takes(pair, hub)
        brings(pair, hub)
        hub.terminate()
        output = hub.ends_with(0)

    assert down.startswith(f"the hub waits for Kafka at {a.ends.bootstrap}, which last answered")
    assert down.partition(",")[0] in level["cannot_say"][0]
    assert "Kafka answers after" in output
    assert "JVM stacktrace" not in output
    assert a.rows == b.rows == verdict.rows_of_changelog(pair)
    assert verdict.rows_of(pair.state, TableName.QUARANTINE) == []


@pytest.mark.slow
def test_a_hub_that_waits_for_its_broker_ends_in_order(pair: Site, folder: Path) -> None:
    """Whoever stops it must not wait too; the next start goes on."""
    Broker.start(folder).stop()
    with pair.hub() as hub:
        waits(hub, 1)
        hub.terminate()

        assert "Traceback" not in hub.ends_with(0)
