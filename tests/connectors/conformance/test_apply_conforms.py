"""A batch of the hub is one local transaction: rows, position, epoch and answer."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from connectors.agent.contract import ReplicaStore, StoreBusyError
from streaming.core.delivery.consumer import Position
from streaming.core.model.errors import StateError
from streaming.core.records.record import Applied, Record, Refused
from tests.connectors.conformance.database_under_test import DatabaseUnderTest
from tests.connectors.conformance.hub_batches import (
    RUV,
    apply,
    changes,
    delete,
    in_session,
    item,
    journalled,
)


@pytest.fixture
def store(database: DatabaseUnderTest) -> ReplicaStore:
    """The database's store within a session."""
    return in_session(database.store())


def test_a_batch_is_applied_with_position_epoch_and_answer(
    database: DatabaseUnderTest, store: ReplicaStore
) -> None:
    """All of it is there for whoever opens the database next."""
    apply(store, item(1, "a", price="1.50"), item(2), delete(2))

    again = database.store()
    assert database.rows() == [(1, "a", "1.50")]
    assert journalled(again) == [Applied(1, 4, 1, RUV, reached=4)]
    assert (again.epoch, again.updates_offset) == (2, 5)
    assert again.position == Position("s1", 4, 4, 1, RUV, 1, reached=4, agreement="a")


def test_an_empty_batch_moves_the_position(store: ReplicaStore) -> None:
    """It is answered like any other."""
    apply(store)

    assert journalled(store) == [Applied(1, 4, 1, RUV, reached=4)]
    assert store.position.covers == 4


def test_columns_that_are_absent_stay_as_they_are(
    database: DatabaseUnderTest, store: ReplicaStore
) -> None:
    """Absent is unknown, not null."""
    database.write("INSERT INTO items (id, name, price) VALUES (1, 'a', '1.50')")

    apply(store, replace(item(1), after='{"id":"1","price":null}'))

    assert database.rows() == [(1, "a", None)]


def test_unique_values_may_swap_within_a_batch(
    database: DatabaseUnderTest, store: ReplicaStore
) -> None:
    """Each row as the hub has it is a state of all of them."""
    database.write("INSERT INTO items (id, name) VALUES (1, 'a'), (2, 'b')")

    refused = apply(store, item(1, "b"), item(2, "a"))

    assert refused == ()
    assert database.rows() == [(1, "b", None), (2, "a", None)]


def test_an_item_that_the_database_refuses_holds_up_no_other(
    database: DatabaseUnderTest, store: ReplicaStore
) -> None:
    """It is reported before the `applied` of its batch; the rest is applied."""
    database.write("INSERT INTO items (id, name) VALUES (9, 'mine')")

    (refused,) = apply(store, item(1, "a"), item(2, "mine"), item(3, "c"))

    assert (refused.key, refused.code, refused.hub_epoch) == ('{"id":"2"}', "unique", 4)
    assert [row[0] for row in database.rows()] == [1, 3, 9]
    own, *answer = journalled(store)
    assert (own, answer) == (changes(store)[0], [refused, Applied(1, 4, 1, RUV, reached=4)])


def test_what_this_agent_does_not_know_stops_it(
    database: DatabaseUnderTest, store: ReplicaStore
) -> None:
    """What it left out, the replica would lack, and nobody would know."""
    with pytest.raises(StateError):
        apply(store, item(1), replace(item(2), op="merge"))

    assert database.rows() == []
    assert database.store().position.covers == 0


def test_a_batch_waits_for_a_local_transaction(
    database: DatabaseUnderTest, store: ReplicaStore
) -> None:
    """Nothing of it is applied meanwhile, and the same call succeeds afterwards."""
    with (
        database.holding("INSERT INTO items (id, name) VALUES (1, 'mine')"),
        pytest.raises(StoreBusyError),
    ):
        apply(store, item(1, "theirs"))

    assert database.rows() == [(1, "mine", None)]
    apply(store, item(1, "theirs"))
    assert database.rows() == [(1, "theirs", None)]


def test_an_answer_keeps_the_session_in_which_it_was_made(
    database: DatabaseUnderTest, store: ReplicaStore
) -> None:
    """Changes are stamped when they are published."""
    database.write("INSERT INTO items (id) VALUES (1)")
    apply(store)

    assert [entry.session for entry in store.unpublished(100, 10**6)] == [None, "s1"]


def test_a_hello_tells_the_position_and_stands_for_unpublished_answers(
    database: DatabaseUnderTest, store: ReplicaStore
) -> None:
    """Those of the session before would be quarantined; the hello says the same and more."""
    apply(store, item(1))
    database.write("INSERT INTO items (id) VALUES (2)")

    hello = store.start_session("s2", "own", lost=True)

    assert (hello.epoch, hello.covers, hello.generation, hello.ruv) == (1, 4, 1, RUV)
    assert (hello.own, hello.lost, hello.reached) == ("own", True, 4)
    assert journalled(store) == changes(store)
    stored = Position("s2", 4, 4, 1, RUV, 1, reached=4, agreement="a")
    assert database.store().position == stored


def test_a_database_that_moves_reads_the_other_topic_from_its_beginning(
    database: DatabaseUnderTest, store: ReplicaStore
) -> None:
    """Its hub epochs, generation and offset are those of the hub that it had."""
    apply(store, item(1))

    again = database.store()
    again.follow("b")
    hello = again.start_session("s2", None, lost=False)

    assert (hello.covers, hello.reached, hello.generation, hello.ruv) == (0, 0, 0, RUV)
    assert (hello.agreement, hello.ruv_of) == ("b", "a")
    assert again.updates_offset == 0
    assert database.store().position == again.position
    back = database.store()
    back.follow("a")
    assert back.start_session("s3", None, lost=False).ruv_of is None


def test_a_refusal_outlives_a_session(database: DatabaseUnderTest, store: ReplicaStore) -> None:
    """It stays in the journal until it is published."""
    database.write("INSERT INTO items (id, name) VALUES (9, 'mine')")
    refused = apply(store, item(1, "mine"))

    again = in_session(database.store(), "s2")

    assert [one for one in journalled(again) if isinstance(one, Refused)] == list(refused)


def _writes(database: DatabaseUnderTest, _: ReplicaStore) -> None:
    database.write_together(
        "INSERT INTO items (id) VALUES (1)", "INSERT INTO items (id) VALUES (2)"
    )


def _publishes(_: DatabaseUnderTest, store: ReplicaStore) -> None:
    store.mark_published(store.unpublished(2, 10**6)[-1])


def _applies(_: DatabaseUnderTest, store: ReplicaStore) -> None:
    apply(store, item(1, "a"), item(3, "b"))


def _begins_a_session(_: DatabaseUnderTest, store: ReplicaStore) -> None:
    store.start_session("s2", None, lost=False)


def _renumbers(_: DatabaseUnderTest, store: ReplicaStore) -> None:
    store.renumber(0, "", 1_800_000_000_000)


def _truncates(database: DatabaseUnderTest, _: ReplicaStore) -> None:
    database.truncate()


STEPS: list[Callable[[DatabaseUnderTest, ReplicaStore], None]] = [
    *(_writes, _publishes, _applies, _begins_a_session, _truncates, _renumbers)
]


@pytest.mark.parametrize("ends_behind", range(1, len(STEPS) + 1))
def test_what_is_stored_outlives_the_process_at_each_point(
    database: DatabaseUnderTest, store: ReplicaStore, ends_behind: int
) -> None:
    """Position, epoch, journal and rows are what the calls before have stored, and no more."""
    for step in STEPS[:ends_behind]:
        step(database, store)
    before = _facts(database, store)

    assert _facts(database, database.store()) == before


def _facts(
    database: DatabaseUnderTest, store: ReplicaStore
) -> tuple[Position, int, int, int, list[Record], object]:
    return (
        replace(store.position, answered=False),  # of this process alone
        store.epoch,
        store.updates_offset,
        store.backlog(),
        journalled(store),
        database.rows(),
    )
