"""A transaction that is larger than the memory is published in parts, and is one all the same."""

import pytest

from connectors import wire
from connectors.agent.loop import Agent
from connectors.postgres.log import journal, reader
from connectors.postgres.store import PostgresStore
from streaming.core.model.change import Change
from streaming.core.records.record import Commit, Hello
from tests.connectors.conformance.database_under_test import RID
from tests.connectors.conformance.hub_batches import CLOCK_S
from tests.connectors.conformance.postgres_database import PostgresDatabase
from tests.connectors.postgres.topic_of_replica import ReplicaTopic

ROWS, READ_AHEAD, PART_WRITES = 3_000, 1_000, 300


def test_an_agent_that_dies_within_it_goes_on_within_it(
    attached: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the server takes a while to send it again: a hello before its end would abort it."""
    monkeypatch.setattr(journal, "READ_AHEAD", READ_AHEAD)
    topic = ReplicaTopic()
    store = attached.store()
    assert isinstance(store, PostgresStore)
    store.reader.assembler.part_writes = PART_WRITES
    agent = Agent(RID, store, topic.topics, None, lambda: CLOCK_S * 1000)
    agent.start()
    attached.write(f"INSERT INTO items SELECT n, 'own ' || n FROM generate_series(1, {ROWS}) n")
    while len(topic.keys()) < READ_AHEAD:
        agent.publish()
        assert len(store.journal.entries) <= READ_AHEAD + PART_WRITES
    assert store.journal.state.within is not None
    last = store.unpublished(500, 10**6)
    topic.topics.publish([wire.encode(agent.session, one.record) for one in last])
    monkeypatch.undo()
    monkeypatch.setattr(reader, "CATCH_UP_S", 0)

    store.close()
    hello = topic.run_agent(attached.dsn)

    assert hello.lost is not True
    assert topic.keys() == [*range(1, ROWS + 1)]
    records = [one for one in topic.topics.records() if isinstance(one, Change | Commit | Hello)]
    assert [type(one) for one in records] == [Hello, *[Change] * ROWS, Commit, Hello]
    assert len({one.prim_csn for one in records if isinstance(one, Change | Commit)}) == 1
    monkeypatch.undo()
    again = attached.store()
    assert isinstance(again, PostgresStore)
    assert (again.backlog(), again.journal.is_within_transaction()) == (0, False)
