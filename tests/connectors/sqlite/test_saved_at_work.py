"""An agent at work saves what it is told to overwrite and what is nowhere else, and says so."""

import json
from dataclasses import replace

from connectors.sqlite.apply import saved_rows
from connectors.sqlite.check import check_database
from streaming.core.records.record import Item, ItemType, RangeItem, Update
from tests.connectors.sqlite.running_agents import RUV, Agents, Hub, until, update
from tests.connectors.sqlite.sqlite_replica import Replica

LARGE = "x" * 3_000_000


def refreshed(session: str, hub_epoch: int, prev: int) -> Update:
    """A batch that gives row 1 back as the hub has it, as an operator's `drop` makes one."""
    after = '{"id":"1","name":"hub","price":null}'
    item = Item(ItemType.REFRESH, "items", '{"id":"1"}', "update", after, None, 0, None, "table")
    return Update("to-r7", 1, session, hub_epoch, prev, hub_epoch, RUV, 0, 1, (item,))


def test_a_large_row_is_listed_over_a_restart_and_saved_when_it_is_overwritten(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """Its bytes are in no topic and in no quarantine, so the file is the only place for them."""
    first = agents.start()
    hub.session()
    replica.client.execute("INSERT INTO items VALUES (1, ?, '1.50')", (LARGE,))
    until(lambda: len(hub.changes()) == 1)
    until(lambda: "is written here and not replicated until it is corrected" in first.log())
    assert first.end() == 0
    assert len(check_database(replica.path, replica.tables).uncarried) == 1

    second = agents.start()
    until(lambda: "not replicated until corrected: 1 row" in second.log())
    hub.send(refreshed(hub.session(2), 4, 0))
    until(lambda: replica.rows() == [(1, "hub", None)])
    until(lambda: "is overwritten, and was nowhere else" in second.log())

    assert f"`slackwater agent saved --database {replica.path}`" in second.log()
    assert second.end() == 0
    (listed,) = saved_rows.listed(replica.path)
    assert (listed.table, listed.key) == ("items", '{"id":"1"}')
    assert "limits.record_bytes" in listed.why
    path = replica.path.with_name("saved.jsonl")
    saved_rows.export(replica.path, path)
    assert json.loads(path.read_text())["row"] == {"id": 1, "name": LARGE, "price": "1.50"}
    assert check_database(replica.path, replica.tables).uncarried == ()


def test_a_full_copy_gives_back_a_row_that_was_changed_behind_the_triggers_and_saves_it(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """The hub knows nothing of the change, so a copy of all rows is what mends it."""
    agent = agents.start()
    hub.send(update(hub.session(), 4, 0, 1, 2))
    until(lambda: [id_ for id_, *_ in replica.rows()] == [1, 2])
    replica.client.execute("UPDATE _slackwater_origin SET applying = 1")
    replica.client.execute("UPDATE items SET name = 'mine' WHERE id = 1")
    replica.client.execute("INSERT INTO items VALUES (3, 'more', NULL)")
    replica.client.execute("UPDATE _slackwater_origin SET applying = 0")

    sent = update(hub.session(), 4, 0, 1, 2)
    rows = (replace(one, type=ItemType.REFRESH, cause="page") for one in sent.rows)
    copy = replace(sent, hub_epoch=5, prev=4, items=(RangeItem("items", None, None, 2), *rows))
    hub.send(copy)

    until(lambda: replica.rows() == [(1, None, "4"), (2, None, "4")])
    until(lambda: agent.log().count("is overwritten, and was nowhere else") == 2)
    assert "changed here without a trigger" in agent.log()
    assert [one.key for one in saved_rows.listed(replica.path)] == ['{"id":"3"}', '{"id":"1"}']


def test_keys_that_are_no_unicode_reach_the_topic_as_two_that_nobody_can_take(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """Both changes are published whole, and the agent goes on behind them."""
    agents.start()
    for digits in ("62ff", "62fe"):
        replica.client.execute(
            f"""INSERT INTO "odd ""pairs""'s" VALUES (CAST(x'{digits}' AS TEXT), 1, 'b')"""
        )
    replica.client.execute("INSERT INTO items VALUES (1, 'good', '1')")

    until(lambda: len(hub.changes()) == 3)

    one, other, good = hub.changes()
    assert [json.loads(change.key)["a"] for change in (one, other)] == [
        {"text_bytes": "Yv8="},
        {"text_bytes": "Yv4="},
    ]
    assert good.table == "items"
