"""The rows that a database had before it was a replica are told in its topic, whole and once."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.agent.contract import JournalEntry
from connectors.sqlite.store import SqliteStore
from streaming.core.model.change import Change, Op
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Record, Snapshot
from tests.connectors.sqlite.sqlite_replica import CREATE_ITEMS, CREATE_PAIRS, ITEMS, PAIRS, RID

MIXED = Table("mixed", ("k",), {"k": ColumnType.TEXT, "v": ColumnType.INT64})


@pytest.fixture
def client(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database with three rows in one table and two in another; no agent has run on it."""
    connection = sqlite3.connect(tmp_path / "r.db", isolation_level=None)
    connection.execute(CREATE_ITEMS)
    connection.execute(CREATE_PAIRS)
    connection.execute("INSERT INTO items VALUES (10, 'j', '1.50'), (2, 'b', NULL), (3, NULL, '0')")
    pairs = [("x", 1, "b"), ("it's", 2, "a")]
    connection.executemany('INSERT INTO "odd ""pairs""\'s" VALUES (?, ?, ?)', pairs)
    yield connection
    connection.close()


def opened(client: sqlite3.Connection, *tables: Table, takes_snapshot: bool = False) -> SqliteStore:
    """The database as an agent opens it."""
    (_, _, path) = client.execute("PRAGMA database_list").fetchone()
    return SqliteStore.open(
        Path(path), RID, tables or (ITEMS, PAIRS), takes_snapshot=takes_snapshot
    )


def told(store: SqliteStore, rows_max: int = 100) -> list[Record]:
    """What is journalled until all is told."""
    while store.journal_snapshot(rows_max):
        pass
    return [entry.record for entry in store.unpublished(10**6, 10**9)]


def short(records: list[Record]) -> list[str]:
    """`begin table`, `key` of a row, `op key` of another change, `end count`."""
    return [_short(one) for one in records]


def _short(record: Record) -> str:
    if isinstance(record, Snapshot):
        return f"{record.phase} {record.count if record.phase == 'end' else record.table}"
    assert isinstance(record, Change)
    return record.key if record.snapshot else f"{record.op} {record.key}"


ALL = [
    "begin items",
    *('{"id":"2"}', '{"id":"3"}', '{"id":"10"}'),
    f"begin {PAIRS.name}",
    *('{"b":"a","a":"it\'s"}', '{"b":"b","a":"x"}'),
    "end 5",
]


@pytest.mark.parametrize("rows_max", [1, 2, 3, 100])
def test_every_row_is_told_once_in_order_of_keys(client: sqlite3.Connection, rows_max: int) -> None:
    """However many are read in one transaction."""
    records = told(opened(client), rows_max)

    assert short(records) == ALL
    rows = [record for record in records if isinstance(record, Change)]
    assert {(row.op, row.before, row.prim_csn) for row in rows} == {(Op.INSERT, None, None)}
    assert [row.after for row in rows][:2] == [
        '{"id":"2","name":"b","price":null}',
        '{"id":"3","name":null,"price":"0"}',
    ]
    assert [row.opno for row in rows] == [1, 2, 3, 4, 5]
    assert len({row.csn for row in rows}) == 5
    ids = {one.id if isinstance(one, Snapshot) else rows[0].snapshot for one in records}
    assert len(ids) == 1


def test_an_agent_that_was_killed_goes_on_behind_the_last_range(client: sqlite3.Connection) -> None:
    """Rows that were told are in the journal, or in the topic already."""
    for _ in range(4):
        store = opened(client)
        store.journal_snapshot(1)
        store.close()

    records = told(opened(client))

    assert short(records) == ALL


def test_what_is_written_meanwhile_is_told_as_it_stands(client: sqlite3.Connection) -> None:
    """A row that was deleted or written before its range is read; one that came behind it."""
    store = opened(client)
    store.journal_snapshot(1)
    client.execute("DELETE FROM items WHERE id = 3")
    client.execute("UPDATE items SET name = 'later' WHERE id = 10")
    client.execute("INSERT INTO items VALUES (1, 'behind the range', NULL)")

    records = told(store)

    rows = {
        record.key: record.after
        for record in records
        if isinstance(record, Change) and record.snapshot
    }
    assert '{"id":"3"}' not in rows
    assert '"later"' in str(rows['{"id":"10"}'])
    assert '{"id":"1"}' not in rows
    assert 'insert {"id":"1"}' in short(records)


def test_the_hello_names_the_snapshot_until_its_end_is_known_to_be_in_the_topic(
    client: sqlite3.Connection,
) -> None:
    """From that hello on the hub sends nothing there, so nothing comes back as an echo."""
    store = opened(client)
    first = store.start_session("s1", None, lost=False).snapshot
    told(store)
    again = store.start_session("s2", None, lost=False).snapshot
    store.mark_published(store.unpublished(10**6, 10**9)[-1])
    last = store.start_session("s3", None, lost=False).snapshot

    assert first is not None
    assert again == first
    assert last is None
    assert not store.journal_snapshot(1)


def test_keys_of_any_storage_class_are_told_once(client: sqlite3.Connection) -> None:
    """SQLite keeps numbers, text and bytes in one column; a null key is no other replica's row."""
    client.execute("CREATE TABLE mixed (k TEXT PRIMARY KEY, v INT)")
    keys = ["b", "B", "a'b", "\U0001f600", "", "10", "9", b"x\x00y", None, None]
    client.executemany("INSERT INTO mixed VALUES (?, 1)", [(key,) for key in keys])

    for rows_max in (1, 3):
        records = told(opened(client, MIXED, takes_snapshot=True), rows_max)
        rows = [one.key for one in records if isinstance(one, Change)][-8:]
        assert len(set(rows)) == 8
        assert isinstance(records[-1], Snapshot)
        assert records[-1].count == 8


def test_rows_are_told_again_when_the_operator_says_so(client: sqlite3.Connection) -> None:
    """Of a replica whose input was lost: what nobody read is in its database only."""
    first = opened(client)
    first.mark_published([*first.unpublished(10**6, 10**9), *_told_entries(first)][-1])

    again = opened(client, takes_snapshot=True)

    assert short(told(again)) == ALL


def _told_entries(store: SqliteStore) -> list[JournalEntry]:
    told(store)
    return store.unpublished(10**6, 10**9)


def test_a_table_that_is_not_configured_any_more_holds_up_nothing(
    client: sqlite3.Connection,
) -> None:
    """Its rows are left out, and the snapshot ends."""
    opened(client).close()

    records = told(opened(client, PAIRS))

    assert short(records) == [*ALL[4:7], "end 2"]


def opened_with_notes(client: sqlite3.Connection, *statements: str) -> SqliteStore:
    """Table items got column note beside the agent, and then these statements were run."""
    with_note = replace(ITEMS, columns={**ITEMS.columns, "note": ColumnType.TEXT})
    without = opened(client, ITEMS)
    told(without)
    without.mark_published(without.unpublished(100, 10**6)[-1])
    without.close()
    for statement in statements:
        client.execute(statement)
    return opened(client, with_note)


@pytest.mark.parametrize("rows_max", [1, 2, 100])
def test_of_a_new_column_the_rows_with_another_value_are_told(
    client: sqlite3.Connection, rows_max: int
) -> None:
    """The others have its default everywhere, and what others wrote there must not lose to it."""
    store = opened_with_notes(
        client,
        "ALTER TABLE items ADD COLUMN note TEXT COLLATE NOCASE DEFAULT 'none'",
        "UPDATE items SET note = 'NONE' WHERE id = 10",
        "UPDATE items SET note = NULL WHERE id = 2",
    )

    assert short(told(store, rows_max)) == ["begin items", '{"id":"2"}', '{"id":"10"}', "end 2"]


def test_a_second_new_column_adds_to_the_rows_that_are_told(client: sqlite3.Connection) -> None:
    """Before the rows of the first were told."""
    store = opened_with_notes(
        client, "ALTER TABLE items ADD COLUMN note TEXT", "UPDATE items SET note = 'x' WHERE id = 2"
    )
    store.close()
    client.execute("ALTER TABLE items ADD COLUMN more TEXT")
    client.execute("UPDATE items SET more = 'y' WHERE id = 3")
    columns = {**ITEMS.columns, "note": ColumnType.TEXT, "more": ColumnType.TEXT}

    store = opened(client, replace(ITEMS, columns=columns))

    assert short(told(store)) == ["begin items", '{"id":"2"}', '{"id":"3"}', "end 2"]


def test_a_new_column_leaves_a_table_whole_that_is_being_told(client: sqlite3.Connection) -> None:
    """Its other rows were written before anybody captured them."""
    store = opened(client, ITEMS)
    store.journal_snapshot(1)
    store.close()
    client.execute("ALTER TABLE items ADD COLUMN note TEXT")
    client.execute("UPDATE items SET note = 'x' WHERE id = 2")

    store = opened(client, replace(ITEMS, columns={**ITEMS.columns, "note": ColumnType.TEXT}))

    keys = [one.key for one in told(store) if isinstance(one, Change)]
    assert set(keys) == {'{"id":"2"}', '{"id":"3"}', '{"id":"10"}'}
