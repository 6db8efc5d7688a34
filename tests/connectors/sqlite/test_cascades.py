"""What a foreign key's action writes is one transaction with the row that fired it."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.sqlite.transaction import transaction
from streaming.core.model.change import Change
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Commit
from tests.connectors.sqlite.sqlite_replica import Replica, make
from tests.harness.examples import examples

T = ColumnType
PARENT = Table("parent", ("id",), {"id": T.INT64, "name": T.TEXT})
CHILD = Table("child", ("id",), {"id": T.INT64, "parent": T.INT64})
GRANDCHILD = Table("grandchild", ("child", "n"), {"child": T.INT64, "n": T.INT32})
TREE = Table("tree", ("id",), {"id": T.INT64, "up": T.INT64})
SCHEMA = {
    "CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT UNIQUE)": PARENT,
    "CREATE TABLE child (id INTEGER PRIMARY KEY, parent INT REFERENCES parent (id)"
    " ON DELETE CASCADE ON UPDATE CASCADE)": CHILD,
    "CREATE TABLE grandchild (child INT REFERENCES child ON DELETE CASCADE ON UPDATE CASCADE,"
    " n INT, PRIMARY KEY (child, n))": GRANDCHILD,
    "CREATE TABLE tree (id INTEGER PRIMARY KEY, up INT REFERENCES tree (id)"
    " ON DELETE SET NULL ON UPDATE CASCADE)": TREE,
}


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    """An application that lets SQLite keep its references, with two children of a parent."""
    made = made_at(tmp_path / "replica.db")
    yield made
    made.client.close()


def made_at(path: Path) -> Replica:
    """A replica at a path, published up to its first rows."""
    made = make(path, SCHEMA)
    made.client.execute("PRAGMA foreign_keys = ON")
    made.client.execute("INSERT INTO parent VALUES (1, 'one'), (2, 'two')")
    made.client.execute("INSERT INTO child VALUES (10, 1), (11, 1), (20, 2)")
    made.client.execute("INSERT INTO grandchild VALUES (10, 1)")
    made.client.execute("INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 2)")
    return made


def written(replica: Replica, *statements: str) -> list[list[str]]:
    """What these statements put into the journal, a list for each transaction of the wire."""
    before = len(replica.records())
    for statement in statements:
        replica.client.execute(statement)
    found, opened = list[list[str]](), dict[str, list[str]]()
    for record in replica.records()[before:]:
        if isinstance(record, Commit):
            found.append(opened.pop(record.prim_csn))
        elif isinstance(record, Change):
            text = f"{record.op} {record.table} {record.key}"
            if record.prim_csn is None:
                found.append([text])
            else:
                opened.setdefault(record.prim_csn, []).append(text)
    assert opened == {}, "a transaction without its end"
    check_order(replica)
    return found


def check_order(replica: Replica) -> None:
    """CSNs and opnos rise with the journal, and a transaction is named by its first change."""
    changes = replica.changes()
    assert [one.csn for one in changes] == sorted({one.csn for one in changes})
    assert [one.opno for one in changes] == list(range(1, len(changes) + 1))
    first = dict[str, str]()
    for one in changes:
        if one.prim_csn is not None:
            assert first.setdefault(one.prim_csn, one.csn) == one.prim_csn
    for name in ("slots", "moved"):
        count = replica.client.execute(f"SELECT count(*) FROM _slackwater_{name}").fetchone()
        assert count == (0,)


def test_a_key_that_cascades_is_one_transaction_the_parent_first(replica: Replica) -> None:
    """A consumer that looks between two transactions sees no child without its parent."""
    assert written(replica, "UPDATE parent SET id = 5 WHERE id = 1") == [
        [
            'delete parent {"id":"1"}',
            'insert parent {"id":"5"}',
            'update child {"id":"10"}',
            'update child {"id":"11"}',
        ]
    ]


def test_a_cascade_of_several_levels_is_one_transaction_from_the_top(replica: Replica) -> None:
    """A grandchild that goes with its parent does not come apart from it."""
    assert written(replica, "UPDATE child SET id = 12 WHERE id = 10") == [
        [
            'delete child {"id":"10"}',
            'insert child {"id":"12"}',
            'delete grandchild {"child":"10","n":1}',
            'insert grandchild {"child":"12","n":1}',
        ]
    ]


def test_a_delete_that_cascades_is_one_transaction_the_children_first(replica: Replica) -> None:
    """No reader in between finds a child whose parent is gone."""
    (found,) = written(replica, "DELETE FROM parent WHERE id = 1")

    assert found[-1] == 'delete parent {"id":"1"}'
    assert sorted(found[:-1]) == [
        'delete child {"id":"10"}',
        'delete child {"id":"11"}',
        'delete grandchild {"child":"10","n":1}',
    ]


def test_a_table_that_refers_to_itself_is_one_transaction(replica: Replica) -> None:
    """Row by row each is the parent of the next."""
    assert written(replica, "UPDATE tree SET id = 9 WHERE id = 1") == [
        ['delete tree {"id":"1"}', 'insert tree {"id":"9"}', 'update tree {"id":"2"}']
    ]
    assert written(replica, "DELETE FROM tree WHERE id = 9") == [
        ['update tree {"id":"2"}', 'delete tree {"id":"9"}']
    ]


def test_a_replaced_parent_takes_its_children_along_in_one_transaction(replica: Replica) -> None:
    """REPLACE deletes the row for SQLite, and its children with it."""
    (found,) = written(replica, "REPLACE INTO parent VALUES (2, 'again')")

    assert found == ['delete child {"id":"20"}', 'update parent {"id":"2"}']


def test_a_cascade_through_a_table_that_is_not_replicated_is_one_transaction(
    tmp_path: Path,
) -> None:
    """What it writes in the end is of the same statement."""
    path = tmp_path / "through.db"
    with closing(sqlite3.connect(path)) as client:
        client.execute(
            "CREATE TABLE child (id INTEGER PRIMARY KEY,"
            " parent INT REFERENCES parent (id) ON DELETE CASCADE)"
        )
    replica = make(path, {text: one for text, one in SCHEMA.items() if one in (PARENT, GRANDCHILD)})
    with closing(replica.client):
        replica.client.execute("PRAGMA foreign_keys = ON")
        replica.client.execute("INSERT INTO parent VALUES (1, 'one')")
        replica.client.execute("INSERT INTO child VALUES (10, 1)")
        replica.client.execute("INSERT INTO grandchild VALUES (10, 1)")

        assert written(replica, "DELETE FROM parent") == [
            ['delete grandchild {"child":"10","n":1}', 'delete parent {"id":"1"}']
        ]


def test_each_parent_of_a_statement_is_a_transaction(replica: Replica) -> None:
    """No trigger sees the end of a statement."""
    found = written(replica, "UPDATE parent SET id = id + 100")

    assert [len(one) for one in found] == [4, 3]


def test_without_actions_each_change_is_one_of_its_own(replica: Replica) -> None:
    """An ordinary write costs no transaction."""
    assert written(
        replica,
        "UPDATE parent SET name = 'first' WHERE id = 1",
        "INSERT INTO parent VALUES (3, 'three')",
        "DELETE FROM parent WHERE id = 3",
    ) == [['update parent {"id":"1"}'], ['insert parent {"id":"3"}'], ['delete parent {"id":"3"}']]


def test_an_open_group_stays_one_with_each_parent_before_its_children(replica: Replica) -> None:
    """The application's own transaction is what it says."""
    before = len(replica.records())
    with transaction(replica.client) as client:
        client.execute("UPDATE child SET parent = 2 WHERE id = 11")
        client.execute("UPDATE parent SET id = 5 WHERE id = 1")
    records = replica.records()[before:]

    changes = [one for one in records if isinstance(one, Change)]
    assert [f"{one.op} {one.table} {one.key}" for one in changes] == [
        'update child {"id":"11"}',
        'delete parent {"id":"1"}',
        'insert parent {"id":"5"}',
        'update child {"id":"10"}',
    ]
    assert len({one.prim_csn for one in changes}) == 1
    assert sum(isinstance(one, Commit) for one in records) == 1
    check_order(replica)


def test_a_row_that_a_statement_leaves_out_joins_nothing_later(replica: Replica) -> None:
    """Its BEFORE trigger has noted a place in the journal that is long past."""
    ignored = "UPDATE OR IGNORE parent SET id = 1 WHERE id = 2"
    assert written(replica, ignored) == []

    assert written(replica, "UPDATE child SET parent = NULL WHERE id = 20") == [
        ['update child {"id":"20"}']
    ]
    assert written(replica, "UPDATE parent SET name = 'x' WHERE id = 2") == [
        ['update parent {"id":"2"}']
    ]
    assert written(replica, "INSERT OR IGNORE INTO parent VALUES (2, 'y')") == []
    assert written(replica, "INSERT INTO parent VALUES (4, 'four')") == [
        ['insert parent {"id":"4"}']
    ]


STATEMENTS = st.sampled_from(
    [
        "UPDATE parent SET id = {} WHERE id = {}",
        "UPDATE OR IGNORE parent SET id = {} WHERE id = {}",
        "UPDATE OR REPLACE parent SET id = {}, name = 'n' WHERE id = {}",
        "DELETE FROM parent WHERE id IN ({}, {})",
        "REPLACE INTO parent VALUES ({}, 'r{}')",
        "INSERT OR IGNORE INTO parent VALUES ({}, 'i{}')",
        "UPDATE child SET id = {} WHERE id = {}",
        "UPDATE OR REPLACE child SET id = {}, parent = {}",
        "INSERT OR IGNORE INTO child VALUES ({}, {})",
        "INSERT OR IGNORE INTO grandchild VALUES ({}, {})",
        "UPDATE tree SET id = {} WHERE id = {}",
        "DELETE FROM tree WHERE id IN ({}, {})",
        "INSERT OR IGNORE INTO tree VALUES ({}, {})",
    ]
)
SMALL = st.integers(1, 4)


@examples(20)
@given(st.lists(st.tuples(STATEMENTS, SMALL, SMALL), min_size=1, max_size=12))
def test_the_journal_alone_makes_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, story: list[tuple[str, int, int]]
) -> None:
    """Whatever is put together and moved, nothing is lost, doubled or out of order."""
    replica = made_at(tmp_path_factory.mktemp("cascades") / "replica.db")
    with closing(replica.client):
        for text, one, other in story:
            try:
                written(replica, text.format(one, other))
            except sqlite3.IntegrityError:
                continue
        rows = replica.replayed()
        for name in ("parent", "child", "grandchild", "tree"):
            images = [json.loads(image) for (table, _), image in rows.items() if table == name]
            told = sorted([str(value) for value in image.values()] for image in images)
            there = sorted([str(value) for value in row] for row in replica.rows(name))
            assert told == there, name
