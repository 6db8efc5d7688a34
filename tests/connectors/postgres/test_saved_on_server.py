"""Rows that no replica can take: listed until written again, saved before they are lost."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import psycopg
import pytest

from connectors.agent.contract import AppliedBatch, SavedRow
from connectors.postgres.apply import saved_rows
from connectors.postgres.sql import Session
from connectors.postgres.store import PostgresStore
from streaming.core.delivery.consumer import ApplyBatch, receive
from streaming.core.model.change import Op
from streaming.core.model.errors import StateError
from streaming.core.records.record import Item, ItemType, RangeItem, Update
from tests.connectors.conformance.hub_batches import CLOCK_S, RUV, delete, item
from tests.connectors.conformance.postgres_database import PostgresDatabase, opened
from tests.connectors.postgres.test_slot_states import publish_all

ROOM = 10_000
"""The largest record of these tests."""
WHOLE_ROW = "whole row: 20035 bytes are more than a record may have (limits.record_bytes)"


@pytest.fixture
def store(attached: PostgresDatabase) -> Iterator[PostgresStore]:
    """A store in a session whose records are small."""
    attached.attach()
    small = reopened(attached)
    small.start_session("s1", None, lost=False)
    yield small
    small.close()


def reopened(database: PostgresDatabase) -> PostgresStore:
    """The database as an agent opens it whose records are small."""
    return opened(database.dsn, record_bytes=ROOM)


def apply(store: PostgresStore, *items: Item | RangeItem, hub_epoch: int = 4) -> AppliedBatch:
    """What an agent does with a batch."""
    position = store.position
    session = position.session or ""
    update = Update("a", 1, session, hub_epoch, position.last, hub_epoch, RUV, 0, 1, items)
    outcome = receive(position, update)
    assert isinstance(outcome, ApplyBatch)
    return store.apply(outcome, hub_epoch + 1, CLOCK_S * 1000)


def large(id_: int, of: int = 20_000) -> str:
    """A statement that writes a row that fits no record."""
    return f"INSERT INTO items VALUES ({id_}, repeat('x', {of}), 1.50)"


def listed(store: PostgresStore) -> list[tuple[str, str]]:
    """Key and why of each saved row."""
    return [(one.key, one.why) for one in saved_rows.listed(store.session)]


def test_a_row_that_fits_no_record_is_listed_until_it_is_written_again(
    attached: PostgresDatabase, store: PostgresStore
) -> None:
    """It stands in its table; the list says that no other replica has it."""
    attached.write(large(1))
    assert store.kept_rows().uncarried == 0
    (change,) = publish_all(store)

    kept = store.kept_rows()
    assert (kept.uncarried, kept.saved) == (1, 0)
    assert kept.first is not None
    assert (kept.first.key, kept.first.csn, kept.first.faults) == (
        '{"id":"1"}',
        change.csn,
        WHOLE_ROW,
    )
    store.close()
    again = reopened(attached)
    assert again.kept_rows().uncarried == 1
    attached.write("UPDATE items SET name = 'x'")
    publish_all(again)
    assert again.kept_rows().uncarried == 0
    again.close()


@pytest.mark.parametrize("is_published", [True, False])
@pytest.mark.parametrize("op", [Op.UPDATE, Op.DELETE])
def test_it_is_saved_before_the_hub_overwrites_it(
    attached: PostgresDatabase, store: PostgresStore, op: Op, *, is_published: bool
) -> None:
    """Though its write is not published yet; and it is no more one that is only here."""
    attached.write(large(1), "INSERT INTO items VALUES (2, 'small', 2)")
    if is_published:
        publish_all(store)

    written = item(1, "of the hub") if op is Op.UPDATE else delete(1)
    done = apply(store, written, item(2, "other"))

    assert done.saved == (SavedRow("items", '{"id":"1"}', WHOLE_ROW),)
    assert "slackwater agent saved --database" in done.saved_shown_by
    assert listed(store) == [('{"id":"1"}', WHOLE_ROW)]
    publish_all(store)
    assert (store.kept_rows().uncarried, store.kept_rows().saved) == (0, 1)


def test_a_refused_row_stands_and_is_not_saved(
    attached: PostgresDatabase, store: PostgresStore
) -> None:
    """What was saved before is forgotten in the same transaction."""
    attached.write(large(1), "INSERT INTO items VALUES (2, 'taken', 2)")
    publish_all(store)

    done = apply(store, item(1, "taken"))

    assert ([one.code for one in done.refused], done.saved, listed(store)) == (["unique"], (), [])
    assert store.kept_rows().uncarried == 1


def test_a_truncate_of_the_hub_saves_what_only_this_database_has(
    attached: PostgresDatabase, store: PostgresStore
) -> None:
    """A row that every replica had goes."""
    attached.write(large(1), "INSERT INTO items VALUES (2, 'small', 2)")
    publish_all(store)
    everything = Item(ItemType.CHANGE, "items", "{}", Op.TRUNCATE, None, item(1).csn, 2)

    apply(store, everything)

    assert attached.rows() == []
    assert listed(store) == [('{"id":"1"}', WHOLE_ROW)]


def test_rows_that_go_with_a_range_are_saved_unless_they_wait_to_be_published(
    attached: PostgresDatabase, store: PostgresStore
) -> None:
    """The hub has forgotten them, perhaps; those that wait come to it."""
    attached.write("INSERT INTO items VALUES (1, 'forgotten', 1)")
    publish_all(store)
    attached.write("INSERT INTO items VALUES (2, 'waits', 2)")
    store.unpublished(10, 10**6)

    apply(store, RangeItem("items", None, None, 0))

    assert attached.rows() == []
    assert [key for key, _ in listed(store)] == ['{"id":"1"}']


@pytest.mark.parametrize(
    ("hidden", "statement", "expected"),
    [
        pytest.param(2, None, [], id="the hub hides as many"),
        pytest.param(1, None, ["1", "2"], id="one is nowhere else"),
        pytest.param(
            2,
            "INSERT INTO slackwater.local_writes VALUES ('items', 1, 1)",
            ["1", "2"],
            id="writes of the table stay here",
        ),
    ],
)
def test_rows_that_the_hub_hides_are_not_saved(
    attached: PostgresDatabase,
    store: PostgresStore,
    hidden: int,
    statement: str | None,
    expected: list[str],
) -> None:
    """They are no loss, and a true one would drown among them. None is named, so they count."""
    attached.write("INSERT INTO items VALUES (1, 'a', 1), (2, 'b', 2)")
    publish_all(store)
    if statement is not None:
        attached.write(statement)

    apply(store, RangeItem("items", None, None, 0, hidden))

    assert attached.rows() == []
    assert sorted(key for key, _ in listed(store)) == [f'{{"id":"{id_}"}}' for id_ in expected]


def test_saved_rows_are_written_to_a_file_and_forgotten(
    attached: PostgresDatabase, store: PostgresStore, tmp_path: Path
) -> None:
    """With their values as PostgreSQL writes them, and columns that are not replicated."""
    attached.write("ALTER TABLE items ADD COLUMN flag bool", large(1))
    attached.write("UPDATE items SET flag = true")
    reader = reopened_after(store, attached)
    publish_all(reader)
    apply(reader, delete(1))
    with psycopg.connect(attached.dsn, autocommit=True) as session:
        check_file(session, tmp_path / "saved.jsonl")
    reader.close()


def reopened_after(store: PostgresStore, database: PostgresDatabase) -> PostgresStore:
    """The store of the agent's next run."""
    store.close()
    again = reopened(database)
    again.start_session("s2", None, lost=False)
    return again


def check_file(session: Session, path: Path) -> None:
    """Export, read and forget."""
    assert saved_rows.export(session, path) == 1
    found = orjson.loads(path.read_bytes())
    assert found["row"] == {"id": "1", "name": "x" * 20_000, "price": "1.50", "flag": "t"}
    assert (found["table"], found["key"], found["why"]) == ("items", {"id": "1"}, WHOLE_ROW)
    with pytest.raises(StateError, match="is there already"):
        saved_rows.export(session, path)
    (one,) = saved_rows.listed(session)
    assert (saved_rows.forget(session, one.id), saved_rows.listed(session)) == (1, [])


def test_a_database_without_the_agents_schema_has_no_saved_rows(dsn: str) -> None:
    """Whoever asks for them gets an empty list."""
    with psycopg.connect(dsn, autocommit=True) as session:
        assert saved_rows.listed(session) == []


def test_what_the_hub_does_not_write_is_left_alone(
    attached: PostgresDatabase, store: PostgresStore
) -> None:
    """No row is saved that the batch does not touch."""
    attached.write(large(1))
    publish_all(store)

    done = apply(store, item(2, "other"))

    assert (done.saved, listed(store), store.kept_rows().uncarried) == ((), [], 1)


def test_a_copy_to_an_archive_deletes_nothing(
    attached: PostgresDatabase, store: PostgresStore
) -> None:
    """Rows of the range that the hub does not have stay, unsaved, for they are still here."""
    attached.write("INSERT INTO items VALUES (1, 'kept', 1.50)")
    publish_all(store)

    apply(store, RangeItem("items", None, None, 0, deletes=False))

    assert [row[:2] for row in attached.rows()] == [(1, "kept")]
    assert listed(store) == []
