"""What exists nowhere else is saved before it is overwritten, whatever makes the agent write."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.agent import saved_lines
from connectors.agent.contract import AppliedBatch, SavedRow
from connectors.sqlite.apply import saved, saved_rows
from connectors.sqlite.apply.saved import NOT_AT_THE_HUB, NOT_CAPTURED
from connectors.sqlite.check import check_database
from connectors.sqlite.install.uninstall import uninstall
from connectors.sqlite.journal import uncarried
from connectors.sqlite.store import SqliteStore
from streaming.core.batch.sending import kept_item
from streaming.core.delivery.consumer import ApplyBatch
from streaming.core.model.errors import StateError
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.record import Item, ItemType, RangeItem
from tests.connectors.sqlite.sqlite_replica import RID, Replica, make

Row = tuple[object, ...]
LARGE = "x" * 3_000_000
FAULTS = {
    "INSERT INTO items VALUES (1, '{large}', NULL)": (1, LARGE, None),
    "INSERT INTO items VALUES (1, 'a', 'cheap')": (1, "a", "cheap"),
    "INSERT INTO items VALUES (1, x'00ff', '1.50')": (1, b"\x00\xff", "1.50"),
    "INSERT INTO items VALUES (1, CAST(x'62ff' AS TEXT), '1')": (1, "b\udcff", "1"),
}
"""A write that no replica can take -> the row as it was written."""


@pytest.fixture
def store(replica: Replica) -> Iterator[SqliteStore]:
    """The replica's database within a session."""
    with closing(replica.store()) as opened:
        opened.start_session("s1", None, lost=False)
        yield opened


def item(id_: int, name: str | None = "hub", op: str = "update") -> Item:
    """A refresh of a row, as an operator's `drop` makes one; without a name: its delete."""
    key = f'{{"id":"{id_}"}}'
    after = None if name is None else f'{{"id":"{id_}","name":"{name}","price":null}}'
    return Item(ItemType.REFRESH, "items", key, op if after else "delete", after, None, 0)


TRUNCATE = Item(ItemType.CHANGE, "items", ALL_KEYS, "truncate", None, "6" * 20, 2)


def apply(store: SqliteStore, *items: Item | RangeItem) -> AppliedBatch:
    """Apply a batch as the agent does."""
    epoch = store.position.reached + 1
    batch = ApplyBatch(store.position, epoch, items)
    return store.apply(batch, epoch, 1_700_000_000_000)


def copied(id_: int, name: str, csn: str) -> Item:
    """A row in a range, as a full copy has it."""
    after = f'{{"id":"{id_}","name":"{name}","price":"1.5"}}'
    return Item(
        ItemType.REFRESH, "items", f'{{"id":"{id_}"}}', "update", after, csn, 2, cause="page"
    )


def apply_up_to(store: SqliteStore, csn: str, *items: Item) -> None:
    """Apply a batch behind which the database has everything of replica 2 up to a CSN."""
    epoch = store.position.reached + 1
    position = replace(store.position, ruv=Ruv().with_csn(csn), reached=epoch)
    store.apply(ApplyBatch(position, epoch, items), epoch, 1_700_000_000_000)


def publish(store: SqliteStore) -> None:
    """Let the topic hold the whole journal."""
    while entries := store.unpublished(100, 10**9):
        store.mark_published(entries[-1])


def saved_values(store: SqliteStore) -> list[Row]:
    """The values of every saved row."""
    ids = store.connection.execute("SELECT id FROM _slackwater_saved ORDER BY id").fetchall()
    return [tuple(value for _, value in saved.values_of(store.connection, id_)) for (id_,) in ids]


@pytest.mark.parametrize("is_published", [True, False], ids=["published", "not yet"])
@pytest.mark.parametrize("name", ["hub", None], ids=["overwritten", "deleted"])
@pytest.mark.parametrize(("statement", "row"), FAULTS.items(), ids=["size", "type", "blob", "text"])
def test_a_row_that_is_not_carried_is_saved_as_it_was(
    replica: Replica,
    store: SqliteStore,
    statement: str,
    row: Row,
    name: str | None,
    *,
    is_published: bool,
) -> None:
    """Whoever makes the hub write it: an operator's drop, another replica, a truncate."""
    replica.client.execute(statement.format(large=LARGE))
    if is_published:
        publish(store)

    applied = apply(store, item(1, name))

    assert saved_values(store) == [row]
    ((table, key, why),) = [(one.table, one.key, one.why) for one in applied.saved]
    assert (table, key, bool(why)) == ("items", '{"id":"1"}', True)
    assert applied.saved_shown_by == f"slackwater agent saved --database {replica.path}"
    assert store.kept_rows().uncarried == 0
    assert [id_ for id_, *_ in replica.rows()] == ([1] if name else [])
    assert apply(store, item(1, "again")).saved == ()


def test_a_truncate_saves_the_rows_that_are_not_carried(
    replica: Replica, store: SqliteStore
) -> None:
    """Also those whose keys no record can have, of which one may stand twice."""
    replica.client.executescript(
        "INSERT INTO items VALUES (1, 'a', '1'), (2, 'b', 'cheap');"
        'INSERT INTO "odd ""pairs""\'s" VALUES (CAST(x\'62ff\' AS TEXT), 1, \'b\');'
        'INSERT INTO "odd ""pairs""\'s" VALUES (CAST(x\'62fe\' AS TEXT), 2, \'b\');'
        'INSERT INTO "odd ""pairs""\'s" VALUES (\'c\', 3, \'b\');'
    )
    odd = Item(ItemType.CHANGE, 'odd "pairs"\'s', ALL_KEYS, "truncate", None, "6" * 20, 2)

    applied = apply(store, TRUNCATE, odd)

    assert sorted(saved_values(store), key=str) == [
        ("b\udcfe", 2, "b"),
        ("b\udcff", 1, "b"),
        (2, "b", "cheap"),
    ]
    assert len(applied.saved) == 3
    assert store.kept_rows().uncarried == 0


def test_a_truncate_takes_every_row_also_where_another_item_is_refused(
    replica: Replica, store: SqliteStore
) -> None:
    """A row whose key no item can name would stay, and the hub knows of no such row any more."""
    replica.client.execute(
        'INSERT INTO "odd ""pairs""\'s" VALUES (CAST(x\'62ff\' AS TEXT), 1, \'b\')'
    )
    odd = replace(TRUNCATE, table='odd "pairs"\'s')

    applied = apply(store, odd, item(1), item(2))  # of one name

    assert len(applied.refused) == 1
    assert replica.rows(odd.table) == []
    assert saved_values(store) == [("b\udcff", 1, "b")]


def test_what_is_corrected_or_carried_is_not_saved(replica: Replica, store: SqliteStore) -> None:
    """It is in the journal, which is published before it is forgotten."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', 'cheap'), (2, 'b', '2')")
    publish(store)
    replica.client.execute("UPDATE items SET price = '1.50' WHERE id = 1")

    assert apply(store, item(1), item(2)).saved == ()
    assert saved_values(store) == []


def test_a_listed_row_that_went_behind_the_triggers_is_listed_no_more_once_it_is_written(
    replica: Replica, store: SqliteStore
) -> None:
    """There is nothing to save, and nothing to correct."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', 'cheap')")
    publish(store)
    replica.client.execute("UPDATE _slackwater_origin SET applying = 1")
    replica.client.execute("DELETE FROM items")
    replica.client.execute("UPDATE _slackwater_origin SET applying = 0")

    assert apply(store, item(1)).saved == ()
    assert store.kept_rows().uncarried == 0


def test_what_is_refused_stays_and_is_not_saved(replica: Replica, store: SqliteStore) -> None:
    """The row still stands, and is still not replicated."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', 'cheap'), (2, 'hub', '2')")

    applied = apply(store, item(1))  # its name is taken

    assert len(applied.refused) == 1
    assert (applied.saved, saved_values(store)) == ((), [])
    assert store.kept_rows().uncarried == 1
    assert replica.rows() == [(1, "a", "cheap"), (2, "hub", "2")]


def test_rows_that_a_full_copy_deletes_are_saved(replica: Replica, store: SqliteStore) -> None:
    """Nobody captured what was written behind the triggers; what the journal has is not lost."""
    replica.client.execute("UPDATE _slackwater_origin SET applying = 1")
    replica.client.execute("INSERT INTO items VALUES (1, 'behind', 'the triggers'), (2, 'b', '2')")
    replica.client.execute("UPDATE _slackwater_origin SET applying = 0")
    replica.client.execute("INSERT INTO items VALUES (3, 'captured', '3'), (4, 'd', '4')")

    applied = apply(store, RangeItem("items", None, None, 1), item(2))

    assert replica.rows() == [(2, "hub", None)]
    assert saved_values(store) == [(1, "behind", "the triggers")]
    assert applied.saved == (SavedRow("items", '{"id":"1"}', NOT_AT_THE_HUB),)


HIDDEN_ROWS = [(1, "behind", "1"), (2, "the triggers", "2")]


@pytest.mark.parametrize(
    ("hidden", "statement", "expected"),
    [
        pytest.param(2, None, [], id="the hub hides as many"),
        pytest.param(3, None, [], id="and others that never were here"),
        pytest.param(1, None, HIDDEN_ROWS, id="one is nowhere else"),
        pytest.param(0, None, HIDDEN_ROWS, id="it does not vouch"),
        pytest.param(
            2,
            "INSERT INTO _slackwater_uncaptured (\"table\", since) VALUES ('items', 1)",
            HIDDEN_ROWS,
            id="a trigger was missing",
        ),
        pytest.param(
            2,
            "UPDATE _slackwater_local_writes SET rows = 1 WHERE \"table\" = 'items'",
            HIDDEN_ROWS,
            id="writes of the table stay here",
        ),
    ],
)
def test_rows_that_the_hub_hides_are_not_saved(
    replica: Replica, store: SqliteStore, hidden: int, statement: str | None, expected: list[Row]
) -> None:
    """They are no loss, and a true one would drown among them. None is named, so they count."""
    replica.client.execute("UPDATE _slackwater_origin SET applying = 1")
    replica.client.executemany("INSERT INTO items VALUES (?, ?, ?)", HIDDEN_ROWS)
    replica.client.execute("UPDATE _slackwater_origin SET applying = 0")
    if statement is not None:
        replica.client.execute(statement)

    applied = apply(store, RangeItem("items", None, None, 1, hidden), item(3))

    assert replica.rows() == [(3, "hub", None)]
    assert saved_values(store) == expected
    assert len(applied.saved) == len(expected)


def test_a_row_that_is_not_carried_is_saved_though_the_hub_hides_as_many(
    replica: Replica, store: SqliteStore
) -> None:
    """The list says that it is nowhere else."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', 'cheap'), (2, 'b', '2')")
    publish(store)

    apply(store, RangeItem("items", None, None, 0, 2))

    assert replica.rows() == []
    assert saved_values(store) == [(1, "a", "cheap")]


def test_many_rows_that_a_full_copy_deletes_take_one_look_at_the_journal(
    replica: Replica, store: SqliteStore
) -> None:
    """Its backlog may be long, and other writers wait for the end of the batch."""
    count = 300
    replica.client.executemany("INSERT INTO items (id) VALUES (?)", [(n,) for n in range(count)])
    thousands = list[None]()
    store.connection.set_progress_handler(lambda: thousands.append(None), 1_000)

    assert apply(store, RangeItem("items", None, None, 0)).saved == ()

    assert replica.rows() == []
    assert len(thousands) < count


OLD, NEW = (f"6500000{digit}000000020000" for digit in "12")
"""CSNs of replica 2: of a version that the database has had, and of a newer one."""

BEHIND_THE_TRIGGERS = {
    "dropped": (
        "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'items'",
        "UPDATE items SET name = 'mine', price = x'00ff' WHERE id = 1",
    ),
    "silenced": (
        "UPDATE _slackwater_origin SET applying = 1",
        "UPDATE items SET name = 'mine', price = x'00ff' WHERE id = 1",
        "UPDATE _slackwater_origin SET applying = 0",
    ),
    "another spelling and a value": (
        "UPDATE _slackwater_origin SET applying = 1",
        "DELETE FROM items WHERE id = 1",
        "INSERT INTO items VALUES (1, 'mine', x'00ff')",
        "UPDATE _slackwater_origin SET applying = 0",
    ),
}


@pytest.mark.parametrize("statements", BEHIND_THE_TRIGGERS.values(), ids=BEHIND_THE_TRIGGERS)
def test_rows_that_a_full_copy_overwrites_are_saved_if_nobody_captured_them(
    replica: Replica, store: SqliteStore, statements: tuple[str, ...]
) -> None:
    """The database has had the version that comes, so what stands there is somebody's own."""
    first = replace(copied(1, "a", OLD), cause=None), replace(copied(2, "b", OLD), cause=None)
    apply_up_to(store, OLD, *first)
    for statement in statements:
        found = replica.client.execute(statement).fetchall()
        for (trigger,) in found:
            replica.client.execute(f'DROP TRIGGER "{trigger}"')
    replica.client.execute("UPDATE items SET price = '+1.5' WHERE id = 2")
    store.close()
    copy = RangeItem("items", None, None, 2), copied(1, "a", OLD), copied(2, "b", OLD)
    opened = SqliteStore.open(replica.path, RID, replica.tables, rows_are_shared=True)

    with closing(opened) as again:
        again.start_session("s2", None, lost=False)
        applied = apply(again, *copy)

        assert replica.rows() == [(1, "a", "1.5"), (2, "b", "+1.5")]
        assert saved_values(again) == [(1, "mine", b"\x00\xff")]
        assert applied.saved == (SavedRow("items", '{"id":"1"}', NOT_CAPTURED),)
        assert apply(again, *copy).saved == ()


def test_a_full_copy_saves_nothing_where_the_database_was_only_behind(
    replica: Replica, store: SqliteStore
) -> None:
    """What stands there is an older version of the hub's, or a write that its journal has."""
    apply_up_to(store, OLD, *(replace(copied(n, f"{n}", OLD), cause=None) for n in (1, 2, 3)))
    replica.client.execute("UPDATE items SET name = 'written' WHERE id = 3")

    applied = apply(
        store,
        RangeItem("items", None, None, 4),
        *(copied(1, "newer", NEW), copied(2, "2", OLD), copied(3, "3", OLD), copied(4, "4", NEW)),
    )

    assert [name for _, name, _ in replica.rows()] == ["newer", "2", "3", "4"]
    assert (applied.saved, saved_values(store)) == ((), [])


def test_a_range_leaves_alone_what_it_names(replica: Replica, store: SqliteStore) -> None:
    """What nobody else can take stays as it was written, and listed; so does its absence."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', 'cheap'), (2, 'b', 'dear')")
    publish(store)
    kept = [kept_item("items", f'{{"id":"{id_}"}}') for id_ in (1, 9)]

    applied = apply(store, RangeItem("items", None, None, 3), copied(3, "c", NEW), *kept)

    assert replica.rows() == [(1, "a", "cheap"), (3, "c", "1.5")]
    assert applied.refused == ()
    assert [one.key for one in uncarried.listed(store.connection)] == ['{"id":"1"}']
    assert saved_values(store) == [(2, "b", "dear")]


def test_columns_that_are_not_configured_are_saved_with_their_row(
    replica: Replica, store: SqliteStore
) -> None:
    """Nobody else has them, so a stranger is saved even if its change was published."""
    replica.client.execute("ALTER TABLE items ADD COLUMN note")
    store.check_schema()
    replica.client.execute("INSERT INTO items VALUES (1, 'a', '1', x'ff')")

    apply(store, RangeItem("items", None, None, 0))

    assert saved_values(store) == [(1, "a", "1", b"\xff")]


def test_the_list_of_rows_that_are_not_carried_survives_a_restart(
    replica: Replica, store: SqliteStore
) -> None:
    """Until each is written again or deleted, whatever the journal still has of it."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', 'x'), (2, 'b', 'y'), (3, 'c', 'z')")
    publish(store)
    store.close()

    with closing(replica.store()) as again:
        assert again.kept_rows().uncarried == 3
        first = again.kept_rows().first
        assert first is not None
        assert first.key == '{"id":"1"}'
        assert first.faults.startswith("price: the text 'x' is no decimal: write a number")
        replica.client.execute("UPDATE items SET price = '1' WHERE id = 1")
        replica.client.execute("DELETE FROM items WHERE id = 2")
        publish(again)
        assert [one.key for one in uncarried.listed(again.connection)] == ['{"id":"3"}']
        replica.client.execute("""INSERT INTO _slackwater_write (op, "table")
            VALUES ('truncate', 'items')""")
        publish(again)
        assert again.kept_rows().uncarried == 0


def test_a_batch_that_is_rolled_back_saves_nothing(replica: Replica, store: SqliteStore) -> None:
    """The image and what overwrites it are one transaction: a crash leaves both or neither."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', 'cheap')")
    store.connection.execute(
        "CREATE TEMP TRIGGER dies AFTER UPDATE ON main._slackwater_position"
        " BEGIN SELECT RAISE(ABORT, 'power cut'); END"
    )

    with pytest.raises(Exception, match="power cut"):
        apply(store, item(1))

    assert (replica.rows(), saved_values(store)) == ([(1, "a", "cheap")], [])


@pytest.mark.parametrize(
    "declared",
    [
        "k TEXT PRIMARY KEY, n INT",
        "k TEXT COLLATE NOCASE, n INT, id INTEGER PRIMARY KEY, UNIQUE (k COLLATE BINARY)",
        "k TEXT COLLATE NOCASE, n INT, id INT PRIMARY KEY, UNIQUE (k COLLATE BINARY)",
    ],
)
def test_rows_that_no_key_tells_apart_are_each_saved(tmp_path: Path, declared: str) -> None:
    """SQLite lets several have a null key, and a truncate deletes them all."""
    table = Table("t", ("k",), {"k": ColumnType.TEXT, "n": ColumnType.INT64})
    replica = make(tmp_path / "nulls.db", {f"CREATE TABLE t ({declared})": table})
    truncate = Item(ItemType.CHANGE, "t", ALL_KEYS, "truncate", None, "6" * 20, 2)
    rows = [(None, 1), (None, 2), ("a", "x"), ("A", "y")]
    with closing(replica.store()) as opened:
        opened.start_session("s1", None, lost=False)
        replica.client.executemany("INSERT INTO t (k, n) VALUES (?, ?)", [*rows, ("b", 3)])

        apply(opened, truncate)

        assert [values[:2] for values in saved_values(opened)] == rows
    replica.client.close()


def test_saved_rows_are_listed_written_to_a_file_and_forgotten(
    replica: Replica, store: SqliteStore, tmp_path: Path
) -> None:
    """With every value as SQLite held it; what is saved after the listing is not forgotten."""
    replica.client.execute("INSERT INTO items VALUES (1, CAST(x'62ff' AS TEXT), x'00ff')")
    replica.client.execute("INSERT INTO items VALUES (2, 'b', 9e999)")
    apply(store, item(1), item(2, "two"))
    path = tmp_path / "saved.jsonl"

    listed = saved_rows.listed(replica.path)
    assert saved_rows.export(replica.path, path) == 2

    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [(line["table"], line["key"], line["row"]) for line in lines] == [
        (
            "items",
            {"id": "1"},
            {"id": 1, "name": {"text_bytes": "Yv8="}, "price": {"blob": "AP8="}},
        ),
        ("items", {"id": "2"}, {"id": 2, "name": "b", "price": "Inf"}),
    ]
    assert [line["why"] for line in lines] == [one.why for one in listed]
    with pytest.raises(StateError, match="name a new file"):
        saved_rows.export(replica.path, path)
    assert saved_rows.forget(replica.path, listed[0].id) == 1
    assert [one.id for one in saved_rows.listed(replica.path)] == [listed[1].id]
    assert saved_rows.forget(replica.path, listed[1].id) == 1
    assert saved_rows.listed(replica.path) == []
    assert query_all(replica, "SELECT * FROM _slackwater_saved_values") == []


def test_a_file_that_cannot_be_written_whole_is_not_left(tmp_path: Path) -> None:
    """It would look like all that was saved, and be in the way of the next try."""

    def lines() -> Iterator[str]:
        yield "first\n"
        raise OSError("no space is left")

    with pytest.raises(OSError, match="no space"):
        saved_lines.write(lines(), tmp_path / "saved.jsonl")

    assert list(tmp_path.iterdir()) == []


def test_a_database_keeps_its_agents_tables_while_rows_are_saved_there(
    replica: Replica, store: SqliteStore
) -> None:
    """Uninstalling would be the last step of losing them."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', 'cheap')")
    apply(store, item(1))
    publish(store)
    store.close()

    with pytest.raises(StateError, match="agent saved --export FILE --forget"):
        uninstall(replica.path)

    saved_rows.forget(replica.path, 1)
    replica.client.close()
    uninstall(replica.path)


def test_the_check_says_what_is_not_replicated_and_what_is_saved(
    replica: Replica, store: SqliteStore
) -> None:
    """A row of this list is nowhere else, whether its agent runs or not."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', 'cheap'), (2, 'b', 'dear')")
    replica.client.execute("INSERT INTO items VALUES (3, ?, NULL)", (LARGE,))
    publish(store)
    apply(store, item(1))

    found = check_database(replica.path, replica.tables)

    assert (len(found.uncarried), found.saved, found.is_good) == (2, 1, False)
    assert found.uncarried[0].startswith('table items row {"id":"2"}, since 2')
    assert [fault.split(": ")[0] for fault in found.row_faults] == [
        'table items row {"id":"2"}',
        'table items row {"id":"3"}',
    ]
    assert "limits.record_bytes" in found.row_faults[1]


def query_all(replica: Replica, query: str) -> list[Row]:
    """What a client finds."""
    return replica.client.execute(query).fetchall()
