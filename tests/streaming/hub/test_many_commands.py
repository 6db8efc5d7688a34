"""More commands than a batch takes: `quarantine drop` orders one for each record."""

import pytest
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from checkpoints.config import COMMANDS_MAX, next_commands
from checkpoints.reading.reader import open_state
from streaming.cli.command import append_commands
from streaming.core.model.command import CommandName
from streaming.hub.batch.pipeline import process
from streaming.hub.service import Service
from tests.harness import verdict
from tests.harness.commits import last_commit
from tests.harness.site import Site
from tests.model.hub import HubKilledError


def take_commands(service: Service) -> None:
    """Carry out the next commands, in a batch without records."""
    last = service.hub.ledger.last
    ordered = next_commands(service.store, last.command_number)
    process(service.hub, service.hub.next_plan(last.offsets, 0, ordered), service.planned)


def test_a_hub_that_dies_in_a_later_command_finishes_its_batch(
    pair: Site, spark: SparkSession
) -> None:
    """It would not start again, and neither `verify` nor `replay` would work on its state."""
    fails = False

    def reach(point: FaultPoint) -> None:
        if fails and point is FaultPoint.BEFORE_COMMIT:
            raise HubKilledError

    pair.run_available(spark)
    ids = [f"1-{n}" for n in range(COMMANDS_MAX + 5)]
    append_commands(open_state(pair.state), CommandName.DROP, ids, None, as_json=True)
    service = Service(pair.config(), spark, reach)
    take_commands(service)
    fails = True
    with pytest.raises(HubKilledError):
        take_commands(service)
    a, b = pair.replicas.values()
    a.write("row", "a")

    with pair.running(spark) as again:
        again.takes(a, b)
        again.brings(a, b)

    verdict.check(pair)
    last = last_commit(pair.state)
    assert last is not None
    assert last.command_number > COMMANDS_MAX
    assert pair.slackwater("verify")["sound"]
    assert pair.slackwater("replay")["equal"]
