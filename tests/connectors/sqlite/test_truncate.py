"""A truncate of a SQLite table: one change at its origin, all rows at a consumer."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.sqlite.apply.batch import apply_batch
from connectors.sqlite.apply.rows import writers
from connectors.sqlite.transaction import truncate
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.change import NOBODY, Op
from streaming.core.records.record import Item, ItemType
from tests.connectors.sqlite.sqlite_replica import CREATE_ITEMS, ITEMS, Replica, make

CLOCK_MS = 1_700_000_000_000


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    """A replica with three rows, and what captured them."""
    made = make(tmp_path / "r.db", {CREATE_ITEMS: ITEMS})
    rows = [(1, "a", "1"), (2, "b", "2"), (3, None, None)]
    made.client.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
    yield made
    made.client.close()


def truncation() -> Item:
    """A truncate of the table, as another replica's change."""
    return Item(ItemType.CHANGE, "items", "", Op.TRUNCATE, None, "65e0f1c0000000070000", 7)


def insert(number: int) -> Item:
    """A row that is sent behind it."""
    key, after = f'{{"id":"{number}"}}', f'{{"id":"{number}","name":"new"}}'
    return Item(ItemType.REFRESH, "items", key, Op.INSERT, after, None, NOBODY)


def apply(replica: Replica, *items: Item) -> list[str]:
    """Apply a batch; the keys that the database refused."""
    known = writers(replica.client, [ITEMS])
    batch = ApplyBatch(Position("s"), 1, items)
    return [one.key for one in apply_batch(replica.client, known, batch, 1, CLOCK_MS).refused]


def test_it_is_one_change_without_a_key(replica: Replica) -> None:
    """A delete of each row could lose in part; this is judged as a whole."""
    truncate(replica.client, "items")

    last = replica.changes()[-1]
    assert (last.op, last.table, last.key, last.before, last.after) == (
        *(Op.TRUNCATE, "items", "", None, None),
    )
    assert len(replica.changes()) == 4
    assert replica.rows() == []


def test_what_is_written_behind_it_is_captured_row_by_row(replica: Replica) -> None:
    """The mark that keeps its deletes out of the journal ends with it."""
    truncate(replica.client, "items")
    replica.client.execute("INSERT INTO items VALUES (1, 'again', NULL)")
    replica.client.execute("DELETE FROM items")

    assert [one.op for one in replica.changes()[3:]] == [Op.TRUNCATE, Op.INSERT, Op.DELETE]


def test_it_goes_with_its_transaction(replica: Replica) -> None:
    """An application that changes its mind has truncated nothing."""
    replica.client.execute("BEGIN")
    truncate(replica.client, "items")
    replica.client.execute("ROLLBACK")

    assert len(replica.rows()) == 3
    assert len(replica.changes()) == 3


@pytest.mark.parametrize("table", ["ITEMS_", "_slackwater_journal", "it'ems"])
def test_a_table_that_is_not_replicated_is_refused(replica: Replica, table: str) -> None:
    """Nobody would hear of it."""
    with pytest.raises(sqlite3.IntegrityError, match="this table is not replicated"):
        truncate(replica.client, table)


def test_a_consumer_loses_all_rows_and_captures_none_of_it(replica: Replica) -> None:
    """Rows that are sent behind it stay."""
    before = len(replica.changes())

    assert apply(replica, truncation(), insert(9)) == []

    assert replica.rows() == [(9, "new", None)]
    assert len(replica.changes()) == before


def test_a_row_that_the_database_keeps_is_refused_and_named(replica: Replica) -> None:
    """The others are deleted all the same."""
    replica.client.execute("CREATE TABLE child (of INTEGER REFERENCES items)")
    replica.client.execute("INSERT INTO child VALUES (2)")
    replica.client.execute("PRAGMA foreign_keys = ON")

    assert apply(replica, truncation()) == ['{"id":"2"}']

    assert [number for number, *_ in replica.rows()] == [2]
