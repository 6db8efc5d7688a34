"""The agreement of a position, in the tables of an agent that did not store it."""

from connectors.sqlite.position import stored_position
from streaming.core.model.ruv import NOTHING_KNOWN
from tests.connectors.sqlite.sqlite_replica import Replica


def test_a_database_of_an_older_agent_learns_the_agreement(replica: Replica) -> None:
    """Its table has no column for it; looking at it needs none."""
    replica.store()
    replica.client.execute("ALTER TABLE _slackwater_position DROP COLUMN agreement")
    assert stored_position(replica.client).ruv == NOTHING_KNOWN

    again = replica.store()
    again.follow("berlin")

    assert stored_position(replica.client).agreement == "berlin"
    assert again.start_session("s", None, lost=False).agreement == "berlin"
