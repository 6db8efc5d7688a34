"""What clients write is journalled: in commit order, whole, once, with the facts that it needs."""

import json
import time
from dataclasses import replace

from connectors.agent.own_topic import OwnTopic
from streaming.core.model.change import Op
from streaming.core.model.csn import format_csn, parse, rid_of
from streaming.core.records.record import Commit, Snapshot
from tests.connectors.conformance.database_under_test import RID, DatabaseUnderTest
from tests.connectors.conformance.hub_batches import (
    CSN,
    apply,
    changes,
    in_session,
    item,
    journalled,
)

INSERT = "INSERT INTO items (id, name, price) VALUES (1, 'a', '1.50')"


def test_each_statement_is_a_change_in_commit_order(database: DatabaseUnderTest) -> None:
    """CSNs and opnos rise, and a change has the row before and after it."""
    store = in_session(database.store())
    database.write(INSERT, "UPDATE items SET name = 'b' WHERE id = 1", "DELETE FROM items")

    first, second, third = changes(store)
    assert [one.op for one in (first, second, third)] == [Op.INSERT, Op.UPDATE, Op.DELETE]
    assert first.csn < second.csn < third.csn
    assert [one.opno for one in (first, second, third)] == [1, 2, 3]
    assert {rid_of(one.csn) for one in (first, second, third)} == {RID}
    images = [json.loads(one) if one else None for one in (first.before, first.after, third.after)]
    assert images == [None, {"id": "1", "name": "a", "price": "1.50"}, None]
    assert (second.before, second.after) == (first.after, third.before)


def test_a_transaction_is_told_as_one(database: DatabaseUnderTest) -> None:
    """Its changes share a prim_csn, and its commit stands behind them."""
    store = in_session(database.store())
    database.write_together(INSERT, "INSERT INTO items (id) VALUES (2)")
    database.write("INSERT INTO items (id) VALUES (3)")

    first, second, commit, alone = journalled(store)
    assert [one.key for one in changes(store)] == ['{"id":"1"}', '{"id":"2"}', '{"id":"3"}']
    assert commit == Commit(changes(store)[0].prim_csn or "")
    assert changes(store)[0].prim_csn == changes(store)[1].prim_csn != changes(store)[2].prim_csn
    assert (first, second, alone) == tuple(changes(store))


def test_what_is_rolled_back_was_never_there(database: DatabaseUnderTest) -> None:
    """Nor does it leave a hole in the opnos, for which a hub would wait."""
    store = in_session(database.store())
    database.roll_back(INSERT)
    database.write("INSERT INTO items (id) VALUES (2)")

    (change,) = changes(store)
    assert (change.key, change.opno) == ('{"id":"2"}', 1)


def test_what_the_agent_applies_is_not_captured(database: DatabaseUnderTest) -> None:
    """It would come back to the hub as a change of this replica."""
    store = in_session(database.store())

    apply(store, item(1, "a"))

    assert changes(store) == []


def test_what_is_to_stay_here_is_counted_and_not_captured(database: DatabaseUnderTest) -> None:
    """Somebody mends one replica; what is written before and behind it goes on as ever."""
    store = in_session(database.store())
    database.write(INSERT)
    database.write_here(
        "UPDATE items SET name = 'here'",
        "INSERT INTO items (id) VALUES (2), (3)",
        "DELETE FROM items WHERE id = 3",
    )
    database.write("INSERT INTO items (id) VALUES (4)")
    captured = [one.key for one in changes(store)]
    store.mark_published(store.unpublished(10**6, 10**9)[-1])

    assert captured == ['{"id":"1"}', '{"id":"4"}']
    assert database.rows() == [(1, "here", "1.50"), (2, None, None), (4, None, None)]
    found = store.local_writes()
    assert {name: one.rows for name, one in found.items()} == {"items": 4}
    assert abs(found["items"].last_ms / 1000 - time.time()) < 60
    assert database.store().local_writes() == found


def test_what_stays_here_is_counted_once_and_at_once(database: DatabaseUnderTest) -> None:
    """Where nothing else is written, and where an agent ends before it has published."""
    store = in_session(database.store())
    database.write_here(INSERT)
    assert journalled(store) == []
    alone = store.local_writes()
    database.write("INSERT INTO items (id) VALUES (2)")
    database.write_here("UPDATE items SET name = 'x' WHERE id = 1")
    assert len(journalled(store)) == 1

    again = in_session(database.store(), "s2")
    again.mark_published(again.unpublished(10**6, 10**9)[-1])
    assert journalled(again) == []

    assert alone["items"].rows == 1
    found = again.local_writes()
    assert found["items"].rows == 2
    assert database.store().local_writes() == found


def test_the_next_write_of_a_row_carries_what_was_written_here(database: DatabaseUnderTest) -> None:
    """A change has the whole row, so whoever wants a row to stay apart must write it here only."""
    store = in_session(database.store())
    database.write(INSERT)
    database.write_here("UPDATE items SET name = 'here'")
    database.write("UPDATE items SET price = '2'")

    _, last = changes(store)
    assert json.loads(last.after or "") == {"id": "1", "name": "here", "price": "2"}


def test_a_truncate_is_one_change(database: DatabaseUnderTest) -> None:
    """However many rows it takes."""
    store = in_session(database.store())
    database.write(INSERT, "INSERT INTO items (id) VALUES (2)")
    database.truncate()

    assert [one.op for one in changes(store)] == [Op.INSERT, Op.INSERT, Op.TRUNCATE]
    assert database.rows() == []


def test_a_write_behind_a_batch_has_the_next_epoch_and_a_larger_csn(
    database: DatabaseUnderTest,
) -> None:
    """Who carries an epoch has seen what the one before it applied."""
    store = in_session(database.store())
    before = store.epoch
    apply(store, item(1, "a"))
    database.write("UPDATE items SET name = 'b'")

    (change,) = changes(store)
    assert (store.epoch, change.epoch) == (before + 1, before + 1)
    assert change.csn > CSN


def test_a_round_is_bounded_in_rows_and_bytes(database: DatabaseUnderTest) -> None:
    """The journal may be larger than the memory."""
    store = in_session(database.store())
    for number in range(10):
        database.write(f"INSERT INTO items (id, name) VALUES ({number}, '{str(number) * 1000}')")

    assert len(store.unpublished(3, 10**6)) == 3
    assert len(store.unpublished(100, 2500)) == 3
    assert len(store.unpublished(100, 1)) == 1


def test_what_is_published_stays_published(database: DatabaseUnderTest) -> None:
    """The backlog is what is lost with the database, if it is lost now."""
    store = in_session(database.store())
    database.write(*(f"INSERT INTO items (id) VALUES ({number})" for number in range(3)))
    full = store.backlog()
    store.mark_published(store.unpublished(2, 10**6)[-1])

    again = database.store()

    assert (full, again.backlog()) == (3, 1)
    assert [one.key for one in changes(again)] == ['{"id":"2"}']


def test_a_record_of_the_own_topic_is_found(database: DatabaseUnderTest) -> None:
    """By its content: another change of the same CSN is not it."""
    store = in_session(database.store())
    database.write(INSERT)
    (entry,) = store.unpublished(10, 10**6)
    (change,) = changes(store)

    assert store.find(change) == entry.id
    assert store.find(change._replace(after='{"id":"1","name":"z","price":null}')) is None


def test_what_the_topic_holds_is_not_published_again(database: DatabaseUnderTest) -> None:
    """An agent that was killed behind an acknowledgement finds its records in the topic."""
    store = in_session(database.store())
    database.write(INSERT, "INSERT INTO items (id) VALUES (2)")
    first, second = changes(store)
    past = OwnTopic(session="s1")
    past.add("s1", first, store.find)

    own = store.reconcile(past)

    assert own == first.csn
    assert changes(store) == [second]


def test_a_database_that_was_put_back_writes_above_its_topic(database: DatabaseUnderTest) -> None:
    """A CSN that is used twice names two changes."""
    store = in_session(database.store())
    database.write(INSERT)
    (before,) = changes(store)
    ahead = parse(before.csn)
    past = OwnTopic(csn=format_csn(replace(ahead, time_s=ahead.time_s + 60)), epoch=9, opno=12)

    store.reconcile(past)
    database.write("INSERT INTO items (id) VALUES (2)")

    assert store.epoch >= past.epoch
    first, second = changes(store)
    assert past.csn < first.csn < second.csn
    assert [one.opno for one in (first, second)] == [13, 14]


def test_rows_that_are_there_are_told_once(database: DatabaseUnderTest) -> None:
    """In parts, and an agent that is started again goes on where it was."""
    database.write(*(f"INSERT INTO items (id) VALUES ({number})" for number in (3, 1, 2)))
    store = in_session(database.store())
    told = 0
    while store.journal_snapshot(1):
        told += 1
        store = in_session(database.store(), f"s{told}")

    records = journalled(store)
    assert [one.phase for one in records if isinstance(one, Snapshot)] == ["begin", "end"]
    assert [one.key for one in changes(store)] == [f'{{"id":"{number}"}}' for number in (1, 2, 3)]
    assert {one.snapshot for one in changes(store)} == {
        one.id for one in records if isinstance(one, Snapshot)
    }


def test_what_follows_a_csn_is_published_again(database: DatabaseUnderTest) -> None:
    """Its transaction as a whole: the hub may have the first part, and a hello ends that.

    A database that forgets what is published says so, and nothing is changed.
    """
    store = in_session(database.store())
    database.write(INSERT)
    database.write_together(*(f"INSERT INTO items (id) VALUES ({number})" for number in (2, 3)))
    records, (first, second, third) = journalled(store), changes(store)
    store.mark_published(store.unpublished(10, 10**6)[-1])

    assert store.publish_again(third.csn)
    if database.forgets:
        assert not store.publish_again(second.csn)
        assert changes(store) == []
        return
    assert changes(store) == [second, third]
    assert store.publish_again(second.csn)
    store = database.store()
    assert journalled(store) == records[1:]
    assert store.publish_again(first.csn)
    assert journalled(store) == records[1:]
    assert store.publish_again("")
    assert journalled(store) == records
