"""The agent as a process, against a real broker: nothing is lost, nothing is applied twice."""

import json
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import Broker
from streaming.core.model.change import Change
from streaming.core.records.record import (
    WIRE_VERSIONS,
    Applied,
    Goodbye,
    Heartbeat,
    Hello,
    ItemType,
    Refused,
)
from tests.connectors.sqlite.running_agents import (
    RUV,
    Agents,
    Hub,
    agents_of,
    hub_at,
    settings_of,
    until,
    update,
    write,
)
from tests.connectors.sqlite.sqlite_replica import Replica


def test_what_is_written_is_published_in_commit_order(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """Hello first, one session, the replica's name as key, the record's own time."""
    write(replica, 1, 3)
    before_ms = time.time_ns() // 1_000_000
    agent = agents.start()
    hub.session()
    write(replica, 4, 3)
    until(lambda: len(hub.changes()) == 6)

    assert agent.end() == 0
    records = hub.records()
    assert hub.changes() == replica.changes()
    assert json.loads(records[0].value)["kind"] == "hello"
    assert len({json.loads(record.value)["session"] for record in records}) == 1
    assert {record.key for record in records} == {b"r7"}
    assert all(before_ms <= record.timestamp <= time.time_ns() // 1_000_000 for record in records)
    assert all(record.timestamp_type == 0 for record in records)


def test_an_agent_that_ends_says_goodbye(replica: Replica, hub: Hub, agents: Agents) -> None:
    """It is the last record; an agent that was killed is spoken for by the next one."""
    first = agents.start()
    hub.session()
    write(replica, 1, 1)
    until(hub.changes)
    first.end()
    kinds = [json.loads(record.value)["kind"] for record in hub.records()]

    second = agents.start()
    killed = hub.session(2)
    second.kill()
    agents.start()
    hub.session(3)

    assert (kinds[0], kinds[-1], kinds.count("goodbye")) == ("hello", "goodbye", 1)
    assert hub.received(Goodbye)[1:] == [(killed, Goodbye(1, 0))]


@pytest.mark.more
def test_a_trigger_that_is_dropped_ends_the_agent_and_is_not_made_again(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """Otherwise the row differs for ever, and nobody says so."""
    trigger = "_slackwater_after_update_items"
    write(replica, 1, 2)
    agent = agents.start()
    until(lambda: len(hub.changes()) == 2)
    replica.client.execute(f"DROP TRIGGER {trigger}")
    replica.client.execute("UPDATE items SET price = '1' WHERE id = 2")

    assert agent.process.wait(60) == 1
    again = agents.start()
    assert again.process.wait(60) == 1
    said = f"table items: it has lost its trigger {trigger}"
    assert all(said in one.log() for one in (agent, again))
    query = "SELECT count(*) FROM sqlite_schema WHERE name = ?"
    assert replica.client.execute(query, (trigger,)).fetchone() == (0,)
    assert isinstance(hub.received(Hello, Goodbye)[-1][1], Goodbye)


def test_a_journal_that_is_dropped_ends_the_agent_with_what_to_do(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """While it runs, and when it starts."""
    agent = agents.start()
    hub.session()
    replica.client.execute("DROP TABLE _slackwater_journal")

    assert agent.process.wait(60) == 1
    again = agents.start()
    assert again.process.wait(60) == 1
    said = "the agent's own table _slackwater_journal was dropped"
    assert all(said in one.log() for one in (agent, again))


@pytest.mark.slow
def test_a_goodbye_does_not_wait_for_a_broker_that_is_away(
    replica: Replica, tmp_path: Path, topic_prefix: str
) -> None:
    """An agent that is told to end, ends; the limit is generous, the broker never comes back."""
    with Broker.start(tmp_path / "broker") as broker:
        settings = settings_of(replica, broker.bootstrap_servers, topic_prefix)
        with (
            hub_at(broker.bootstrap_servers, topic_prefix) as hub,
            agents_of(settings, tmp_path) as agents,
        ):
            agent = agents.start()
            hub.session()
            broker.stop()

            assert agent.end() == 0


def test_a_batch_is_applied_and_answered(replica: Replica, hub: Hub, agents: Agents) -> None:
    """`applied` carries the epoch before; the next heartbeat the one after."""
    agents.start()
    session = hub.session()

    hub.send(update(session, 3, 0, 1, 2))

    until(lambda: (session, Heartbeat(2)) in hub.received(Heartbeat))
    assert hub.received(Applied) == [(session, Applied(1, 3, 1, RUV, reached=3))]
    assert replica.rows() == [(1, None, "3"), (2, None, "3")]
    assert hub.changes() == []


def test_a_batch_that_comes_again_is_applied_once(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """The hub publishes again after a crash; a local write in between must stay."""
    agents.start()
    session = hub.session()
    hub.send(update(session, 1, 0, 1))
    until(hub.applied)
    replica.client.execute("UPDATE items SET name = 'mine'")

    hub.send(update(session, 1, 0, 1), update(session, 2, 1, 2))

    until(lambda: (session, 2) in hub.applied())
    assert hub.applied() == [(session, 1), (session, 2)]
    assert replica.rows() == [(1, "mine", "1"), (2, None, "2")]


def test_a_missing_batch_leads_to_a_new_session(replica: Replica, hub: Hub, agents: Agents) -> None:
    """Never over a gap; what still answers the old session is dropped."""
    agents.start()
    first = hub.session()
    hub.send(update(first, 1, 0, 1), update(first, 3, 2, 3), update(first, 4, 3, 4))

    second = hub.session(2)
    hub.send(update(second, 3, 1, 2, 3))

    until(lambda: (second, 3) in hub.applied())
    hello = hub.received(Hello)[1][1]
    assert (hello.epoch, hello.covers, hello.generation, hello.ruv) == (1, 1, 1, RUV)
    assert [row[0] for row in replica.rows()] == [1, 2, 3]
    assert len(hub.received(Hello)) == 2


def test_a_batch_in_chunks_is_applied_whole_after_a_crash_in_the_middle(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """A chunk that was read is read again; the new session starts the batch afresh."""
    agent = agents.start()
    session = hub.session()
    one = replace(update(session, 2, 0, 1), chunks=2)
    two = replace(update(session, 2, 0, 2), chunk=1, chunks=2)
    hub.send(update(session, 1, 0, 5), one)
    until(lambda: (session, 1) in hub.applied())

    agent.kill()
    agents.start()
    session = hub.session(2)
    assert [row[0] for row in replica.rows()] == [5]
    hub.send(*(replace(chunk, session=session, prev=1) for chunk in (one, two)))

    until(lambda: (session, 2) in hub.applied())
    assert [row[0] for row in replica.rows()] == [1, 2, 5]


def test_a_hub_of_a_higher_generation_is_greeted_and_then_followed(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """A restored hub must learn the true position first; one of the old generation is ignored."""
    agents.start()
    first = hub.session()
    hub.send(update(first, 1, 0, 1))
    until(hub.applied)
    hub.send(*(replace(update(first, epoch, 1, 2), generation=2) for epoch in (2, 3)))

    second = hub.session(2)
    hub.send(replace(update(second, 9, 1, 3), generation=2), update(second, 10, 9, 4))
    hub.send(replace(update(second, 11, 9, 5), generation=2))

    until(lambda: (second, 11) in hub.applied())
    assert [row[0] for row in replica.rows()] == [1, 3, 5]
    assert [record.generation for _, record in hub.received(Hello)] == [0, 1]
    assert [record.generation for _, record in hub.received(Applied)] == [1, 2, 2]


def test_an_item_that_is_refused_is_told_before_the_answer(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """And the agent goes on."""
    replica.client.execute("INSERT INTO items VALUES (1, 'taken', NULL)")
    agent = agents.start()
    session = hub.session()
    good = update(session, 1, 0, 2, 3)
    bad = replace(good.items[0], after='{"id":"2","name":"taken","price":null}')

    hub.send(replace(good, items=(bad, good.items[1])))

    until(hub.applied)
    (_, refused), _ = hub.received(Refused, Applied)
    assert (refused.code, refused.key) == ("unique", '{"id":"2"}')
    assert [row[0] for row in replica.rows()] == [1, 3]
    assert 'the database refuses row items {"id":"2"} (unique): ' in agent.log()


def test_an_own_change_that_the_hub_quarantined_is_named(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """Its row is set back; who wrote it has no other way to learn that."""
    write(replica, 1, 1)
    agent = agents.start()
    lost = update(hub.session(), 1, 0, 1, 2)
    causes = ("skew", "conflict")
    items = zip(lost.rows, causes, strict=True)
    back = tuple(replace(i, type=ItemType.REFRESH, op="update", cause=c) for i, c in items)

    hub.send(replace(lost, items=back))

    until(hub.applied)
    until(lambda: "(skew 1)" in agent.log())
    assert 'sets their rows back to its own: row items {"id":"1"}; ' in agent.log()
    assert '{"id":"2"}' not in agent.log()


def test_an_agent_says_which_topic_it_waits_for(
    replica: Replica, broker: Broker, topic_prefix: str, tmp_path: Path
) -> None:
    """It was started before its hub, which creates the topics; then it goes on by itself."""
    settings = settings_of(replica, broker.bootstrap_servers, topic_prefix)
    waits = f"waiting for topic {topic_prefix}changes.r7: (re)start the hub, which creates it\n"
    with agents_of(settings, tmp_path) as agents:
        write(replica, 1, 1)
        agent = agents.start()
        until(lambda: waits in agent.log())
        with hub_at(broker.bootstrap_servers, topic_prefix) as hub:
            hub.send(update(hub.session(), 1, 0, 2))
            until(hub.applied)
        assert agent.log().count("waiting for topic") == 1
        assert f"topic {topic_prefix}changes.r7 is there\n" in agent.log()
        assert "Kafka does not answer" not in agent.log()
        assert agent.end() == 0


def test_a_restarted_agent_says_where_it_stands(replica: Replica, hub: Hub, agents: Agents) -> None:
    """The position is stored with the rows; what it wrote meanwhile is announced and follows."""
    agent = agents.start()
    write(replica, 1, 1)
    session = hub.session()
    hub.send(update(session, 4, 0, 2))
    until(lambda: (session, Heartbeat(2)) in hub.received(Heartbeat))  # all is published
    agent.kill()
    write(replica, 3, 1)
    agents.start()

    session = hub.session(2)
    until(lambda: len(hub.changes()) == 2)
    first, second = replica.changes()
    assert hub.received(Hello)[1] == (
        session,
        Hello(
            *(1, 4, 1, RUV, first.csn),
            lost=False,
            versions=WIRE_VERSIONS,
            reached=4,
            unpublished=1,
        ),
    )
    assert hub.received(Change)[1] == (session, second)
    assert (first.epoch, second.epoch) == (1, 2)


@pytest.mark.more
def test_an_agent_that_is_killed_again_and_again_loses_nothing(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """What comes twice has the same content; first appearances are in CSN order."""
    for round_ in range(2):
        agent = agents.start()
        hub.session(round_ + 1)
        write(replica, 1 + 100 * round_, 100)
        agent.kill()
    agents.start()

    until(lambda: set(hub.changes()) == set(replica.changes()))
    first_seen = list(dict.fromkeys(change.csn for change in hub.changes()))
    assert first_seen == [change.csn for change in replica.changes()]
    assert all(one < other for one, other in pairwise(first_seen))
    assert not any(hello.lost for _, hello in hub.received(Hello))


def test_an_agent_that_is_killed_while_it_applies_applies_everything_once(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """Rows, position, epoch and answer are one transaction: all or nothing of a batch."""
    for round_ in range(2):
        agent = agents.start()
        session = hub.session(round_ + 1)
        covers = hub.received(Hello)[-1][1].covers
        batch = range(covers + 1, covers + 40)
        hub.send(*(update(session, epoch, epoch - 1, epoch) for epoch in batch))
        until(partial(_has_rows, replica, covers + 5))
        agent.kill()

    agents.start()
    hub.session(3)
    covers = hub.received(Hello)[-1][1].covers
    assert replica.rows() == [(epoch, None, str(epoch)) for epoch in range(1, covers + 1)]
    (epoch,) = replica.client.execute("SELECT epoch FROM _slackwater_origin").fetchone()
    assert epoch == covers + 1


def _has_rows(replica: Replica, count: int) -> bool:
    return len(replica.rows()) >= count


@pytest.mark.more
def test_a_broker_that_goes_away_and_comes_back_costs_nothing(
    replica: Replica, tmp_path: Path, topic_prefix: str
) -> None:
    """Neither when it is killed in mid-run, nor when it is not there at the start."""
    own = Broker.start(tmp_path / "broker")
    with (
        hub_at(own.bootstrap_servers, topic_prefix) as hub,
        agents_of(settings_of(replica, own.bootstrap_servers, topic_prefix), tmp_path) as agents,
    ):
        agent = agents.start()
        hub.session()
        own.kill()
        write(replica, 1, 50)
        until(lambda: "Kafka does not answer" in agent.log())
        own = Broker.start(tmp_path / "broker")
        until(lambda: len(set(hub.changes())) == 50)
        hub.send(update(hub.session(), 1, 0, 1000))
        until(hub.applied)

        own.kill()
        write(replica, 51, 50)
        until(lambda: agent.log().count("Kafka does not answer") == 2)
        assert agent.end() == 0
        late = agents.start()
        until(lambda: "Kafka does not answer" in late.log())
        own = Broker.start(tmp_path / "broker")
        until(lambda: len(set(hub.changes())) == 100)

        assert late.end() == 0
        assert list(dict.fromkeys(hub.changes())) == replica.changes()
        assert agent.log().count("Kafka answers again") == 1
        assert late.log().count("Kafka does not answer") == 1
    own.stop()


def test_a_value_that_no_replica_can_take_is_published_and_said(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """The application's statement succeeds, and nothing after it waits."""
    agent = agents.start()
    hub.session()

    replica.client.execute("INSERT INTO items VALUES (1, 'a', 'cheap')")
    replica.client.execute("INSERT INTO items VALUES (2, 'b', '2')")

    until(lambda: len(hub.changes()) == 2)
    assert hub.changes()[0].after == '{"id":"1","name":"a","price":{"text":"cheap"}}'
    until(lambda: 'row {"id":"1"} is written here and not replicated until' in agent.log())
    assert "price: the text 'cheap' is no decimal: write a number" in agent.log()
