"""Foreign keys that lead to replicated tables: what is said of them, and which rows break them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from connectors.sqlite.check import check_database
from connectors.sqlite.schema.references import BROKEN_MAX
from connectors.sqlite.store import SqliteStore
from streaming.core.delivery.consumer import ApplyBatch, receive
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Item, ItemType, Update
from tests.connectors.sqlite.running_agents import RUV
from tests.connectors.sqlite.sqlite_replica import RID

T = ColumnType
PARENT = Table("parent", ("id",), {"id": T.INT64})
CHILD = Table("child", ("id",), {"id": T.INT64, "parent": T.INT64})
SCHEMA = """
CREATE TABLE parent (id INTEGER PRIMARY KEY);
CREATE TABLE child (
  id INTEGER PRIMARY KEY, parent INT REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE TABLE note (id INTEGER PRIMARY KEY, about INT REFERENCES parent (id) ON DELETE SET NULL);
CREATE TABLE "order" (id INTEGER PRIMARY KEY, about INT REFERENCES parent (id) ON DELETE CASCADE);
CREATE TABLE tag (id INTEGER PRIMARY KEY, about INT REFERENCES parent (id));
CREATE TABLE moved (id INTEGER PRIMARY KEY, about INT REFERENCES parent (id) ON UPDATE CASCADE);
CREATE TABLE apart (id INTEGER PRIMARY KEY, of INT REFERENCES tag (id) ON DELETE CASCADE);
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A parent with children that are replicated, and some that are not."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as client:
        client.executescript(SCHEMA)
    return path


def warnings(database: Path) -> dict[str, str]:
    """Table -> what is said of its foreign key."""
    found = check_database(database, [PARENT, CHILD]).warnings
    names = ("child", "note", "order", "tag", "moved", "apart")
    return {
        name: text
        for name in names
        for text in found
        if text.startswith(f"table {name}: FOREIGN KEY") and "REFERENCES" in text
    }


def test_each_action_that_does_not_run_is_named_with_what_follows(database: Path) -> None:
    """Orphans are found by their writer, months later; the check knows them before."""
    said = warnings(database)

    assert (
        "ON DELETE CASCADE ON UPDATE CASCADE: the agent does not run it, because it ran"
        in (said["child"])
    )
    assert (
        "not configured, and the agent does not run it when it applies: its rows stay"
        in (said["note"])
    )
    assert 'UPDATE "note" SET "about" = NULL WHERE "about" = OLD."id"; END' in said["note"]
    assert (
        'BEGIN UPDATE "moved" SET "about" = NEW."id" WHERE "about" = OLD."id"; END' in said["moved"]
    )
    assert "the agent does not check it when it applies: rows of it refer to nothing" in said["tag"]
    assert "apart" not in said


def deleted(id_: int) -> Update:
    """A batch that deletes a parent."""
    item = Item(ItemType.CHANGE, "parent", f'{{"id":"{id_}"}}', "delete", None, "0" * 20, 2)
    return Update("to-r7", 1, "s", 1, 0, 1, RUV, 0, 1, (item,))


def test_the_trigger_that_is_named_does_what_the_action_would(database: Path) -> None:
    """A remedy that is printed is tried."""
    trigger = warnings(database)["order"].partition("which does fire then: ")[2]
    with closing(sqlite3.connect(database, isolation_level=None)) as client:
        client.execute(f"CREATE TRIGGER orphans {trigger}")
        client.executescript(
            'INSERT INTO parent VALUES (1), (2); INSERT INTO "order" VALUES (1, 1), (2, 2);'
        )
        with closing(
            SqliteStore.open(database, RID, [PARENT, CHILD], rows_are_shared=True)
        ) as store:
            store.start_session("s", None, lost=False)
            outcome = receive(store.position, deleted(1))
            assert isinstance(outcome, ApplyBatch)
            assert store.apply(outcome, 1, 0).refused == ()

        assert client.execute('SELECT id FROM "order"').fetchall() == [(2,)]


def test_rows_that_refer_to_nothing_are_listed_and_counted(database: Path) -> None:
    """An application that checks its references finds them broken otherwise."""
    with closing(sqlite3.connect(database)) as client, client:
        client.execute("INSERT INTO parent VALUES (1)")
        client.executemany("INSERT INTO child VALUES (?, ?)", [(1, 1), (2, 9)])
        client.executemany("INSERT INTO note VALUES (?, 7)", [(n,) for n in range(BROKEN_MAX + 5)])
        client.execute("INSERT INTO apart VALUES (1, 1)")

    found = check_database(database, [PARENT, CHILD], looks_at_references=True).broken_references

    assert found[0] == "table child row 2 (parent = 9) refers to no row of parent"
    assert len(found) == 1 + BROKEN_MAX + 1
    assert found[-1] == "table note: and 5 more rows"
    assert check_database(database, [PARENT, CHILD]).broken_references == ()
