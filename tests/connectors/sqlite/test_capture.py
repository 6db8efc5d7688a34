"""Whatever any SQLite client writes is in the journal, in commit order, and nothing else."""

import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from connectors import wire
from connectors.agent.contract import JournalEntry
from connectors.sqlite.install.install import install
from connectors.sqlite.schema.user_triggers import GUARD
from connectors.sqlite.transaction import transaction
from streaming.core.model.change import Op
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text
from streaming.core.records.check import check
from streaming.core.records.record import Commit, Reason
from tests.connectors.sqlite.sqlite_replica import (
    CREATE_ITEMS,
    CREATE_PAIRS,
    ITEMS,
    PAIRS,
    RID,
    Replica,
    make,
)
from tests.harness.examples import examples

ONE = '{"id":"1","name":"a","price":"1.50"}'
TWO = '{"id":"2","name":"b","price":null}'
NULL_KEY = "id: a null key: write a value; no other replica gets this row"
MOVED = '{"id":"9","name":"a","price":"1.50"}'


def test_every_write_is_captured_with_its_images(replica: Replica) -> None:
    """Insert, update and delete with key, before and after, as canonical text."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', '1.50')")
    replica.client.execute("UPDATE items SET name = 'b' WHERE id = 1")
    replica.client.execute("DELETE FROM items")

    two = '{"id":"1","name":"b","price":"1.50"}'
    assert replica.short() == [
        f'insert {{"id":"1"}} - -> {ONE}',
        f'update {{"id":"1"}} {ONE} -> {two}',
        f'delete {{"id":"1"}} {two} -> -',
    ]


def test_names_that_need_quoting_and_keys_of_several_columns_are_captured(
    replica: Replica,
) -> None:
    """The key is in key order, the image in schema order."""
    name = PAIRS.name.replace('"', '""')
    replica.client.execute(f"INSERT INTO \"{name}\" VALUES ('q\"\\', 5, 'é')")

    (change,) = replica.changes()
    assert change.table == PAIRS.name
    assert change.key == '{"b":"é","a":"q\\"\\\\"}'
    assert change.after == '{"a":"q\\"\\\\","x y":5,"b":"é"}'


def test_csns_rise_and_opnos_have_no_holes(replica: Replica) -> None:
    """Per replica CSN order is commit order; a write that is rolled back leaves nothing."""
    for number in range(20):
        replica.client.execute("INSERT INTO items (id) VALUES (?)", (number,))
        replica.client.execute("BEGIN")
        replica.client.execute("DELETE FROM items")
        replica.client.execute("ROLLBACK")

    changes = replica.changes()
    assert [change.opno for change in changes] == list(range(1, 21))
    assert all(one.csn < other.csn for one, other in pairwise(changes))
    assert {change.epoch for change in changes} == {1}
    assert {change.prim_csn for change in changes} == {None}


def test_a_statement_that_fails_leaves_nothing(replica: Replica) -> None:
    """Journal and rows are one transaction."""
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        replica.client.execute("INSERT INTO items VALUES (1, 'a', NULL), (2, 'a', NULL)")

    assert replica.records() == []


def test_statements_outside_a_group_are_transactions_of_one_each(replica: Replica) -> None:
    """SQLite does not report in SQL where a transaction ends."""
    with replica.client:
        replica.client.execute("BEGIN")
        replica.client.execute("INSERT INTO items VALUES (1, 'a', NULL), (2, 'b', NULL)")

    assert [change.prim_csn for change in replica.changes()] == [None, None]


def test_a_group_is_one_transaction(replica: Replica) -> None:
    """All changes share the prim_csn of the first; the commit follows them."""
    with transaction(replica.client):
        replica.client.execute("INSERT INTO items VALUES (1, 'a', NULL)")
        replica.client.execute("UPDATE items SET id = 2")
    replica.client.execute("INSERT INTO items VALUES (3, 'c', NULL)")

    first, second, third, commit, alone = replica.records()
    prims = [change.prim_csn for change in replica.changes()]
    assert prims == [replica.changes()[0].csn] * 3 + [None]
    assert commit == Commit(replica.changes()[0].csn)
    assert alone == replica.changes()[3]
    assert {first, second, third} == set(replica.changes()[:3])


def test_a_group_that_wrote_nothing_says_nothing(replica: Replica) -> None:
    """A commit of nothing would be counted as one of an unknown transaction."""
    with transaction(replica.client):
        replica.client.execute("SELECT 1")

    assert replica.records() == []


def test_a_group_that_fails_leaves_nothing(replica: Replica) -> None:
    """And the next write is no part of it."""
    with pytest.raises(sqlite3.IntegrityError), transaction(replica.client):
        replica.client.executemany("INSERT INTO items VALUES (1, ?, NULL)", ["a", "b"])
    replica.client.execute("INSERT INTO items VALUES (2, 'b', NULL)")

    (change,) = replica.records()
    assert change == replica.changes()[0]
    assert replica.changes()[0].prim_csn is None


def test_a_changed_key_is_delete_and_insert_in_one_transaction(replica: Replica) -> None:
    """Other replicas know a row by its key."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', '1.50')")
    replica.client.execute("UPDATE items SET id = 9")

    assert replica.short()[1:] == [
        f'delete {{"id":"1"}} {ONE} -> -',
        f'insert {{"id":"9"}} - -> {MOVED}',
        "commit",
    ]
    _, delete, insert = replica.changes()
    assert delete.prim_csn == insert.prim_csn == delete.csn


def test_keys_that_move_through_each_other_are_captured(replica: Replica) -> None:
    """Each step is recorded as it happens."""
    replica.client.executemany("INSERT INTO items (id) VALUES (?)", [(1,), (2,), (3,)])
    replica.client.execute("UPDATE items SET id = -id")
    replica.client.execute("UPDATE items SET id = 1 - id")

    assert replica.replayed() == stored(replica)


@pytest.mark.parametrize("recursive", [False, True])
def test_a_row_replaced_under_its_own_key_is_not_lost(replica: Replica, *, recursive: bool) -> None:
    """REPLACE deletes the old row, for which SQLite fires no trigger by default."""
    replica.client.execute(f"PRAGMA recursive_triggers = {recursive}")
    replica.client.execute("INSERT INTO items VALUES (1, 'a', '1.50')")
    replica.client.execute("REPLACE INTO items VALUES (1, 'b', NULL)")

    assert replica.replayed() == stored(replica)
    assert replica.changes()[-1].after == '{"id":"1","name":"b","price":null}'
    if not recursive:
        assert replica.short()[1:] == [
            f'update {{"id":"1"}} {ONE} -> {{"id":"1","name":"b","price":null}}'
        ]


@pytest.mark.parametrize("recursive", [False, True])
def test_rows_replaced_by_another_unique_column_are_deleted_elsewhere_too(
    replica: Replica, *, recursive: bool
) -> None:
    """One REPLACE may delete several rows; all of it is one transaction."""
    replica.client.execute(f"PRAGMA recursive_triggers = {recursive}")
    replica.client.execute("INSERT INTO items VALUES (1, 'a', '1.50'), (2, 'b', NULL)")
    replica.client.execute("INSERT OR REPLACE INTO items VALUES (2, 'a', NULL)")

    assert replica.replayed() == stored(replica)
    if not recursive:
        assert replica.short()[2:] == [
            f'delete {{"id":"1"}} {ONE} -> -',
            f'update {{"id":"2"}} {TWO} -> {{"id":"2","name":"a","price":null}}',
            "commit",
        ]


@pytest.mark.parametrize("recursive", [False, True])
def test_an_update_that_replaces_is_captured(replica: Replica, *, recursive: bool) -> None:
    """UPDATE OR REPLACE deletes rows like REPLACE does."""
    replica.client.execute(f"PRAGMA recursive_triggers = {recursive}")
    replica.client.execute("INSERT INTO items VALUES (1, 'a', '1.50'), (2, 'b', NULL)")
    replica.client.execute("UPDATE OR REPLACE items SET name = 'a' WHERE id = 2")
    replica.client.execute("INSERT INTO items VALUES (1, 'b', '1.50')")
    replica.client.execute("UPDATE OR REPLACE items SET id = 1 WHERE id = 2")

    assert replica.replayed() == stored(replica)


def test_an_insert_that_is_ignored_says_nothing(replica: Replica) -> None:
    """And neither does it when its row is deleted and comes back later."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', '1.50')")
    replica.client.execute("INSERT OR IGNORE INTO items VALUES (2, 'a', NULL)")
    replica.client.execute("DELETE FROM items")
    replica.client.execute("INSERT INTO items VALUES (3, 'c', NULL)")

    assert [change.op for change in replica.changes()] == [Op.INSERT, Op.DELETE, Op.INSERT]


def test_an_upsert_is_an_update(replica: Replica) -> None:
    """SQLite fires the insert's BEFORE trigger, then those of the update."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', '1.50')")
    replica.client.execute(
        "INSERT INTO items (id, name) VALUES (1, 'x') ON CONFLICT DO UPDATE SET name = 'b'"
    )

    assert replica.short()[1:] == [
        f'update {{"id":"1"}} {ONE} -> {{"id":"1","name":"b","price":"1.50"}}'
    ]


def test_rows_deleted_by_a_foreign_key_are_captured(tmp_path: Path) -> None:
    """What a cascade deletes here must be deleted everywhere."""
    parts = Table("parts", ("id",), {"id": ColumnType.INT64, "item": ColumnType.INT64})
    create = (
        "CREATE TABLE parts (id INTEGER PRIMARY KEY,"
        " item INTEGER REFERENCES items (id) ON DELETE CASCADE ON UPDATE CASCADE)"
    )
    replica = make(tmp_path / "r.db", {CREATE_ITEMS: ITEMS, create: parts})
    replica.client.execute("PRAGMA foreign_keys = ON")
    replica.client.execute("INSERT INTO items (id) VALUES (1)")
    replica.client.execute("INSERT INTO parts VALUES (1, 1), (2, 1)")
    replica.client.execute("UPDATE items SET id = 5")
    replica.client.execute("DELETE FROM items")

    assert replica.replayed() == {}
    replica.client.close()


def test_the_row_is_told_as_a_users_trigger_leaves_it(replica: Replica) -> None:
    """A user's trigger may write the row again before or after ours sees it."""
    replica.client.execute(
        f"CREATE TRIGGER audit AFTER INSERT ON items {GUARD} BEGIN"
        " UPDATE items SET price = '7' WHERE id = NEW.id; END"
    )
    replica.client.execute(
        f"CREATE TRIGGER undo AFTER DELETE ON items {GUARD} AND OLD.name = 'stay' BEGIN"
        " INSERT INTO items VALUES (OLD.id, 'again', NULL); END"
    )
    install(replica.client, RID, replica.tables)
    replica.client.execute("INSERT INTO items VALUES (1, 'stay', '1')")
    replica.client.execute("DELETE FROM items")

    assert replica.replayed() == stored(replica)
    assert replica.rows() == [(1, "again", "7")]


def test_columns_that_are_not_replicated_are_left_out(tmp_path: Path) -> None:
    """And a write on such a column alone says nothing."""
    create = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price TEXT, note TEXT)"
    replica = make(tmp_path / "r.db", {create: ITEMS})
    replica.client.execute("INSERT INTO items VALUES (1, 'a', '1.50', 'mine')")
    replica.client.execute("UPDATE items SET note = 'still mine'")

    assert replica.short() == [f'insert {{"id":"1"}} - -> {ONE}']
    replica.client.close()


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("INSERT INTO items VALUES (1, x'00', NULL)", "name: the blob 'AA==' is no text"),
        ("INSERT INTO items VALUES (1, 'a', '1,5')", "price: the text '1,5' is no decimal"),
        ("UPDATE items SET price = '--1'", "price: the text '--1' is no decimal"),
        (
            'INSERT INTO "odd ""pairs""\'s" VALUES (\'a\', 2147483648, \'b\')',
            "x y: the integer '2147483648' is no int32",
        ),
    ],
)
def test_a_value_that_no_replica_can_take_is_written_and_reported(
    replica: Replica, statement: str, fault: str
) -> None:
    """The schema allows it, so the statement succeeds; the hub quarantines the change."""
    replica.client.execute("INSERT INTO items VALUES (5, 'e', NULL)")

    replica.client.execute(statement)

    good, bad = replica.entries()
    assert (good.faults, reason_of(good, replica)) == ((), None)
    assert bad.faults[0].startswith(fault)
    assert reason_of(bad, replica) is Reason.TABLE


def test_a_corrected_row_is_replicated_again(replica: Replica) -> None:
    """A change carries its whole row, so the next good one brings it level."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', 'cheap')")
    replica.client.execute("UPDATE items SET price = '1.50'")

    bad, good = replica.entries()
    assert bad.faults
    assert (good.faults, reason_of(good, replica)) == ((), None)
    assert replica.changes()[1].after == ONE


def test_a_null_key_is_written_and_reported(tmp_path: Path) -> None:
    """SQLite allows nulls in a primary key of text, as often as they come."""
    table = Table("t", ("id",), {"id": ColumnType.TEXT, "n": ColumnType.INT64})
    replica = make(tmp_path / "r.db", {"CREATE TABLE t (id TEXT PRIMARY KEY, n INT)": table})

    for _ in range(3):
        replica.client.execute("REPLACE INTO t VALUES (NULL, 5)")
    replica.client.execute("UPDATE t SET n = 6 WHERE rowid = 1")
    assert [reason_of(entry, replica) for entry in replica.entries()] == [Reason.TABLE] * 4
    assert all(entry.faults == (NULL_KEY,) for entry in replica.entries())

    replica.client.execute("UPDATE t SET id = 'a' WHERE rowid = 1")
    replica.client.execute("UPDATE t SET id = NULL WHERE rowid = 1")
    replica.client.execute("DELETE FROM t")
    assert [line for line in replica.short()[4:] if line != "commit"] == [
        'insert {"id":"a"} - -> {"id":"a","n":"6"}',
        'delete {"id":"a"} {"id":"a","n":"6"} -> -',
        'insert {"id":null} - -> {"id":null,"n":"6"}',
    ]
    replica.client.close()


def test_of_a_row_too_large_for_a_record_the_size_is_reported(replica: Replica) -> None:
    """The statement succeeds; a record that the topic cannot take would block all after it."""
    replica.client.execute("INSERT INTO items VALUES (1, ?, NULL)", ("a" * 600_000,))
    replica.client.execute("UPDATE items SET name = ?", ("b" * 600_000,))
    replica.client.execute("UPDATE items SET name = ?", ("b" * 1_000_000,))
    replica.client.execute("UPDATE items SET name = 'c'")

    assert [change.before for change in replica.changes()] == [None, "{}", "{}", "{}"]
    assert [reason_of(entry, replica) for entry in replica.entries()] == [
        None,
        None,
        Reason.TABLE,
        None,
    ]
    assert replica.entries()[2].faults == (
        "whole row: 1000033 bytes are more than a record may have (limits.record_bytes)",
    )
    sizes = [len(wire.encode("s" * 36, change)) for change in replica.changes()]
    assert max(sizes) < 1_000_000


def test_a_value_near_sqlites_own_limit_is_written(tmp_path: Path) -> None:
    """Its image in hexadecimal digits would exceed the billion bytes that a value may have."""
    table = Table("t", ("id",), {"id": ColumnType.INT64, "b": ColumnType.BYTES})
    create = "CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB)"
    replica = make(tmp_path / "r.db", {create: table})
    replica.client.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 40_000_000)

    replica.client.execute("INSERT INTO t VALUES (1, zeroblob(30000000))")

    assert replica.entries()[0].faults == (
        "b: 30000000 bytes are more than a record may have (limits.record_bytes)",
    )
    replica.client.close()


def reason_of(entry: JournalEntry, replica: Replica) -> Reason | None:
    """The reason for which the hub quarantines a published entry, or None."""
    tables = {table.name: table for table in replica.tables}
    return check(wire.encode("s", entry.record), RID, tables).reason


def test_writers_that_meet_are_captured_in_commit_order(replica: Replica) -> None:
    """SQLite has one writer at a time; the other waits and gets the higher CSN."""
    with closing(sqlite3.connect(replica.path, isolation_level=None)) as other:
        replica.client.execute("BEGIN")
        replica.client.execute("SELECT * FROM items").fetchall()
        other.execute("INSERT INTO items (id) VALUES (1)")
        replica.client.execute("COMMIT")
        replica.client.execute("INSERT INTO items (id) VALUES (2)")

    keys = [change.key for change in replica.changes()]
    assert keys == ['{"id":"1"}', '{"id":"2"}']


def stored(replica: Replica) -> dict[tuple[str, str], str]:
    """The rows of the items table, in the same form."""
    cursor = replica.client.execute("SELECT id, name, price FROM items")
    rows = [dict(zip(("id", "name", "price"), row, strict=True)) for row in cursor]
    texts = [{"id": str(row["id"]), "name": row["name"], "price": row["price"]} for row in rows]
    return {("items", json_text({"id": row["id"]})): json_text(row) for row in texts}


class Writes(RuleBasedStateMachine):
    """Any sequence of statements, with and without groups, rollbacks and REPLACE."""

    ids = st.integers(1, 4)
    names = st.none() | st.sampled_from("abc")
    verbs = st.sampled_from(
        ["INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT OR ABORT", "INSERT OR FAIL"]
    )
    ors = st.sampled_from(["", "OR REPLACE", "OR IGNORE", "OR FAIL"])

    def __init__(self) -> None:
        super().__init__()
        self.replica = make(Path(":memory:"), {CREATE_ITEMS: ITEMS, CREATE_PAIRS: PAIRS})

    def teardown(self) -> None:
        """Close the database."""
        self.replica.client.close()

    def _run(self, statement: str, *values: object) -> None:
        try:
            self.replica.client.execute(statement, values)
        except sqlite3.IntegrityError as error:
            assert "slackwater" not in str(error)  # noqa: PT017 the others are the user's own

    @rule(recursive=st.booleans())
    def client_with(self, *, recursive: bool) -> None:
        """Another client may have the other setting."""
        if not self.replica.client.in_transaction:
            self.replica.client.execute(f"PRAGMA recursive_triggers = {recursive}")

    @rule(verb=verbs, id_=ids, name=names, other=ids, other_name=names)
    def insert(
        self, verb: str, id_: int, name: str | None, other: int, other_name: str | None
    ) -> None:
        """Two rows at once."""
        statement = f"{verb} INTO items (id, name) VALUES (?, ?), (?, ?)"
        self._run(statement, id_, name, other, other_name)

    @rule(id_=ids, name=names)
    def upsert(self, id_: int, name: str | None) -> None:
        """On whatever conflict there is."""
        self._run(
            "INSERT INTO items (id, name) VALUES (?, ?)"
            " ON CONFLICT DO UPDATE SET id = id % 4 + 1, price = '3'",
            id_,
            name,
        )

    @rule(or_=ors, id_=ids, name=names)
    def update(self, or_: str, id_: int, name: str | None) -> None:
        """A column that is unique."""
        self._run(f"UPDATE {or_} items SET name = ? WHERE id >= ?", name, id_)

    @rule(or_=ors, by=st.integers(-2, 2))
    def move(self, or_: str, by: int) -> None:
        """The key itself."""
        self._run(f"UPDATE {or_} items SET id = id + ?", by)

    @rule(id_=ids)
    def delete(self, id_: int) -> None:
        """One row or none."""
        self._run("DELETE FROM items WHERE id = ?", id_)

    @rule(how=st.sampled_from(["BEGIN", "COMMIT", "ROLLBACK"]))
    def transact(self, how: str) -> None:
        """Whatever is possible now."""
        if self.replica.client.in_transaction == (how != "BEGIN"):
            self.replica.client.execute(how)

    @invariant()
    def the_journal_leads_to_the_rows(self) -> None:
        """Who applies the journal holds what is stored here."""
        assert self.replica.replayed() == stored(self.replica)

    @invariant()
    def every_group_is_closed(self) -> None:
        """Each prim_csn has its commit, after its changes."""
        open_prims = set[str]()
        for record in self.replica.records():
            if isinstance(record, Commit):
                open_prims.remove(record.prim_csn)
            elif isinstance(prim := getattr(record, "prim_csn", None), str):
                open_prims.add(prim)
        assert not open_prims


TestWrites = Writes.TestCase
TestWrites.settings = settings(examples(40, share=8), stateful_step_count=25)
