"""A column that a table lacks: rows that have it are refused; the agent says when it is there."""

from dataclasses import replace

from connectors.agent.contract import ReplicaStore, StoreLostError
from streaming.core.model.change import Change
from streaming.core.records.record import Refused
from tests.connectors.conformance.database_under_test import DatabaseUnderTest
from tests.connectors.conformance.hub_batches import (
    apply,
    changes,
    delete,
    in_session,
    item,
    journalled,
)

DROPPED = "ALTER TABLE items DROP COLUMN price"
ADDED = "ALTER TABLE items ADD COLUMN price numeric"


def without_price(database: DatabaseUnderTest) -> ReplicaStore:
    """The store of a table that has not got the configured column yet."""
    database.write(DROPPED)
    return in_session(database.store())


def lacking(store: ReplicaStore) -> tuple[str, ...]:
    """What the agent publishes that its table lacks."""
    schema = store.unpublished_schema()
    assert schema is not None
    store.mark_schema_published(schema)
    return schema.lacking or ()


def altered(database: DatabaseUnderTest, store: ReplicaStore, *statements: str) -> ReplicaStore:
    """The store once its agent has noticed what was altered: another one, if it opens it anew."""
    database.write(*statements)
    try:
        store.check_schema()
    except StoreLostError:
        return in_session(database.store(), "s2")
    return store


def told(store: ReplicaStore) -> list[str | None]:
    """The images of the rows that are told as those of a snapshot."""
    while store.journal_snapshot(100):
        pass
    return [one.after for one in changes(store) if one.snapshot is not None]


def test_rows_with_a_column_that_the_table_lacks_are_refused_for_it(
    database: DatabaseUnderTest,
) -> None:
    """Others, and deletes, are applied; an agent says once which columns it lacks."""
    store = without_price(database)
    assert lacking(store) == ("items.price",)
    assert store.unpublished_schema() is None
    bare = replace(item(2), after='{"id":"2","name":"b"}')

    refused = apply(store, item(1, "a", price="1.50"), bare, delete(3))

    assert [(one.key, one.code) for one in refused] == [('{"id":"1"}', "column")]
    assert "table items has no column price here: add it (ALTER TABLE)" in refused[0].text
    database.write(ADDED)
    assert [(id_, name) for id_, name, _ in database.rows()] == [(2, "b")]


def test_an_agent_goes_on_by_itself_once_the_column_is_there(database: DatabaseUnderTest) -> None:
    """It says that it lacks nothing, takes the row, and captures the column."""
    store = without_price(database)
    lacking(store)
    apply(store, item(1, "a", price="1.50"))

    store = altered(database, store, ADDED)

    assert lacking(store) == ()
    assert apply(store, item(1, "a", price="1.5"), hub_epoch=5) == ()
    assert [(id_, float(price or 0)) for id_, _, price in database.rows()] == [(1, 1.5)]
    database.write("INSERT INTO items (id, name, price) VALUES (7, 'mine', 2.5)")
    assert changes(store)[-1].after == '{"id":"7","name":"mine","price":"2.5"}'


def test_what_is_written_without_the_column_says_nothing_of_it(database: DatabaseUnderTest) -> None:
    """Absent is unknown: at the hub the row keeps what it has there."""
    store = without_price(database)

    database.write("INSERT INTO items (id, name) VALUES (1, 'a')")

    assert [one.after for one in changes(store)] == ['{"id":"1","name":"a"}']


def test_a_column_that_came_with_a_default_is_not_told(database: DatabaseUnderTest) -> None:
    """Every other database gives its rows the same one."""
    store = without_price(database)
    database.write("INSERT INTO items (id, name) VALUES (1, 'a')")

    store = altered(database, store, f"{ADDED} NOT NULL DEFAULT 5")

    assert told(store) == []
    database.write("UPDATE items SET name = 'b'")
    assert '"price":"5' in (changes(store)[-1].after or "")


def test_what_was_written_to_it_before_the_agent_looked_is_told(
    database: DatabaseUnderTest,
) -> None:
    """No trigger captured it, or the log was read without it."""
    store = without_price(database)
    database.write("INSERT INTO items (id, name) VALUES (1, 'a'), (2, 'b')")

    store = altered(database, store, ADDED, "UPDATE items SET price = 1.50 WHERE id = 1")

    assert [image for image in told(store) if image and '"price":"1.5' in image]


def test_a_column_that_is_renamed_is_one_that_the_table_lacks(database: DatabaseUnderTest) -> None:
    """The agent goes on, and says so; named back, its rows are told: they may be others by now."""
    store = in_session(database.store())
    database.write("INSERT INTO items (id, name, price) VALUES (1, 'a', 5)")
    assert lacking(store) == ()

    store = altered(database, store, "ALTER TABLE items RENAME COLUMN price TO cost")
    assert lacking(store) == ("items.price",)
    database.write("UPDATE items SET cost = NULL")
    store = altered(database, store, "ALTER TABLE items RENAME COLUMN cost TO price")

    assert lacking(store) == ()
    assert told(store) == ['{"id":"1","name":"a","price":null}']


def test_a_column_that_is_not_configured_here_is_met_and_said(database: DatabaseUnderTest) -> None:
    """The agent runs with an older file; the row waits until it has the one of the hub."""
    store = in_session(database.store())
    assert lacking(store) == ()

    (refused,) = apply(store, replace(item(1), after='{"id":"1","colour":"red"}'))

    assert (refused.code, lacking(store)) == ("column", ("items.colour",))
    assert "configure it for this agent too" in refused.text
    assert [one for one in journalled(store) if isinstance(one, Refused)] == [refused]
    assert not [one for one in journalled(store) if isinstance(one, Change)]
