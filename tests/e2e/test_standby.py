"""A hub that stands by takes over when the other one is gone, and does nothing before that."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import Broker
from streaming.hub.standby.rehearsal import WARM
from tests.harness.commits import last_commit
from tests.harness.hub_process import HubProcess
from tests.harness.site import Site, site_with_sessions
from tests.model.replica import image, row_of

STANDS_BY = "stands by: the hub with process id"
TAKES_OVER = "takes over the state"


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub of two replicas that have said hello."""
    with site_with_sessions(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        yield made


def waits(standby: HubProcess) -> None:
    """Wait until a standby has nothing more to do."""
    standby.waits_for(lambda: STANDS_BY in standby.output, "it stands by")


def is_taken(at: Site, hub: HubProcess, value: str) -> None:
    """Let the first replica write, and wait until this hub has sent it to the second."""
    a, b = at.replicas["a"], at.replicas["b"]
    a.write("row", value)

    def is_there() -> bool:
        a.catch_up()
        b.catch_up()
        return b.rows == {row_of("row"): image("row", value)}

    hub.waits_for(is_there, f"{value} is sent")


def test_a_standby_takes_over_from_a_hub_that_is_killed(pair: Site) -> None:
    """Nobody has to notice it, and the numbers go on where the dead one was.

    A standby alone is the hub, so both may be started by one command. Until the other one is gone
    it does nothing, for two that publish would send two batches under one number; a supervisor
    stops it like a hub, and must not have to kill it.
    """
    with pair.hub("--standby") as active:
        is_taken(pair, active, "alone")
        assert STANDS_BY not in active.output
        with pair.hub("--standby") as stopped:
            waits(stopped)
            stopped.signal_group(signal.SIGTERM)
            assert "Traceback" not in stopped.ends_with(0)
        with pair.hub("--standby") as standby:
            waits(standby)
            standby.waits_for(lambda: WARM in standby.output, "it has read what is there")
            is_taken(pair, active, "before")
            assert standby.runs()
            assert TAKES_OVER not in standby.output.split(STANDS_BY)[1]
            commit = last_commit(pair.state)
            assert commit is not None

            active.kill()
            is_taken(pair, standby, "after")

            found = last_commit(pair.state)
            assert found is not None
            assert TAKES_OVER in standby.output
            assert found.state.generation == commit.state.generation
            assert found.state.hub_epoch > commit.state.hub_epoch
