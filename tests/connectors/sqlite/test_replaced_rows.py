"""REPLACE deletes rows without a trigger, also those that a user's trigger has just written."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.sqlite.install.install import install
from connectors.sqlite.schema.user_triggers import GUARD
from streaming.core.model.table import ColumnType, Table
from tests.connectors.sqlite.sqlite_replica import RID, Replica
from tests.harness.examples import examples

WHOLE = ColumnType.INT64
COLUMNS = {"id": WHOLE, "a": WHOLE, "b": WHOLE, "c": WHOLE}
TABLES = {
    "t": "id INTEGER PRIMARY KEY, a INT UNIQUE, b INT, c INT, UNIQUE (b, c)",
    "o": "id INT NOT NULL PRIMARY KEY, a INT, b INT UNIQUE, c INT"
    " REFERENCES o (b) ON UPDATE CASCADE ON DELETE SET NULL",
    "g": "id INT NOT NULL PRIMARY KEY, a INT, b INT, c INT, u AS (coalesce(a, b)) UNIQUE",
}
"""By a rowid that is no column, a foreign key's action, and a generated column, too."""


def made(path: Path, table: str, older: Sequence[str], younger: Sequence[str]) -> Replica:
    """A replica of one of the tables, with triggers older and younger than the agent's."""
    tables = (Table(table, ("id",), COLUMNS),)
    client = sqlite3.connect(path, isolation_level=None)
    client.execute("PRAGMA foreign_keys = ON")
    for statement in (f"CREATE TABLE {table} ({TABLES[table]})", *older):
        client.execute(statement)
    install(client, RID, tables)
    for statement in younger:
        client.execute(statement)
    return Replica(path, client, tables)


def check(replica: Replica) -> None:
    """What the journal alone makes is what the file has."""
    told = [json.loads(image).values() for image in replica.replayed().values()]
    (table,) = replica.tables
    there = replica.client.execute(f"SELECT id, a, b, c FROM {table.name} ORDER BY id").fetchall()
    assert sorted(tuple(n and int(n) for n in image) for image in told) == there


@pytest.mark.parametrize("is_older", [True, False])
@pytest.mark.parametrize("when", ["BEFORE", "AFTER"])
def test_a_users_trigger_does_not_hide_what_its_statement_replaces(
    tmp_path: Path, when: str, *, is_older: bool
) -> None:
    """It writes a unique column of another row between the agent's two triggers."""
    trigger = (
        f"CREATE TRIGGER mine {when} INSERT ON t {GUARD} BEGIN"
        " UPDATE t SET a = a + 100 WHERE id = 3; END"
    )
    replica = made(tmp_path / "r.db", "t", *([trigger], []) if is_older else ([], [trigger]))
    with closing(replica.client):
        replica.client.execute("INSERT INTO t (id, a) VALUES (1, 1), (3, 3)")

        replica.client.execute("INSERT OR REPLACE INTO t (id, a) VALUES (2, 1)")

        check(replica)


def test_a_row_that_gave_its_key_to_another_is_deleted_before(tmp_path: Path) -> None:
    """The changes of a cascade are put in order, and this delete stands where the key was free."""
    replica = made(tmp_path / "r.db", "o", [], [])
    with closing(replica.client):
        replica.client.execute("PRAGMA recursive_triggers = TRUE")
        replica.client.execute("INSERT INTO o (id, b) VALUES (1, 1), (2, 2)")

        replica.client.execute("UPDATE OR REPLACE o SET id = 1, b = 1 WHERE id = 2")

        check(replica)
        assert [row[0] for row in replica.rows("o")] == [1]


@pytest.mark.parametrize("is_older", [True, False])
def test_a_row_that_a_users_trigger_brings_in_the_way_is_captured_as_replaced(
    tmp_path: Path, *, is_older: bool
) -> None:
    """It was not there when the statement began, and is not there when it ends."""
    trigger = (
        f"CREATE TRIGGER mine BEFORE INSERT ON t {GUARD} BEGIN"
        " UPDATE t SET a = NEW.a WHERE id = 3; INSERT INTO t (id, b, c) VALUES (8, NEW.b, 2); END"
    )
    replica = made(tmp_path / "r.db", "t", *([trigger], []) if is_older else ([], [trigger]))
    with closing(replica.client):
        replica.client.execute("INSERT INTO t (id) VALUES (3)")

        replica.client.execute("INSERT OR REPLACE INTO t VALUES (2, 1, 1, 2)")

        check(replica)
        assert [row[0] for row in replica.rows("t")] == [2]


@pytest.mark.parametrize(
    ("statement", "body"),
    [
        ("INSERT OR FAIL INTO t (id) VALUES (2)", "UPDATE t SET a = 1 WHERE id = 2"),
        ("INSERT INTO t (id) VALUES (2)", "SELECT RAISE(IGNORE)"),
        ("REPLACE INTO t (id, a) VALUES (2, 1)", "SELECT RAISE(FAIL, 'no')"),
    ],
)
def test_what_stays_behind_a_trigger_that_ends_its_statement_is_captured(
    tmp_path: Path, statement: str, body: str
) -> None:
    """SQLite fires no trigger behind it, and keeps the row: the agent's fires before it."""
    trigger = f"CREATE TRIGGER mine AFTER INSERT ON T {GUARD} AND NEW.id = 2 BEGIN {body}; END"
    replica = made(tmp_path / "r.db", "t", [], [trigger])
    with closing(replica.client):
        install(replica.client, RID, replica.tables)  # as an agent does that finds another schema
        replica.client.execute("INSERT INTO t (id, a) VALUES (1, 1)")

        with suppress(sqlite3.IntegrityError):
            replica.client.execute(statement)

        assert [row[0] for row in replica.rows("t")][-1] == 2
        check(replica)


@pytest.mark.parametrize("table", ["t", "o"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {table} SET rowid = 7 WHERE id = 1",
        "UPDATE {table} SET (_ROWID_, c) = (7, NULL) WHERE id = 1",
        'UPDATE {table} SET "oid" = id + 10',
        "UPDATE OR REPLACE {table} SET oid = 2 WHERE id = 1",
        "INSERT INTO {table} (id, a) VALUES (1, 5) ON CONFLICT DO UPDATE SET rowid = 7",
    ],
)
def test_a_statement_that_sets_the_rowid_is_captured(
    tmp_path: Path, table: str, statement: str
) -> None:
    """It names no column, and moves the row of an integer key, or replaces that of another."""
    replica = made(tmp_path / "r.db", table, [], [])
    with closing(replica.client):
        replica.client.execute(f"INSERT INTO {table} (id, b) VALUES (1, 1), (2, 2), (3, 3)")

        replica.client.execute(statement.format(table=table))

        check(replica)


SMALL = st.integers(1, 4)
CONFLICTS = st.sampled_from(["", "OR REPLACE", "OR IGNORE"])
WRITES = st.sampled_from(
    [
        "INSERT {conflict} INTO {table} (id, a, b, c) VALUES ({x}, {y}, {z}, 1)",
        "INSERT {conflict} INTO {table} (id, a, b) VALUES ({x}, {y}, {z}), ({z}, {x}, {y})",
        "INSERT INTO {table} (id, a, b) VALUES ({x}, {y}, {z}) ON CONFLICT DO UPDATE SET b = 1",
        "UPDATE {conflict} {table} SET a = {x} WHERE id >= {y}",
        "UPDATE {conflict} {table} SET id = {x}, b = {y} WHERE id = {z}",
        "UPDATE {conflict} {table} SET b = {x}, c = {y} WHERE id <> {z}",
        "UPDATE {conflict} {table} SET rowid = {x} WHERE id = {y}",
        "UPDATE {conflict} {table} SET c = {z}, [OID] = {x} WHERE id <= {y}",
        "INSERT INTO {table} (id, a) VALUES ({x}, {y}) ON CONFLICT DO UPDATE SET _rowid_ = {z}",
        "DELETE FROM {table} WHERE id IN ({x}, {y})",
    ]
)
NESTED = st.sampled_from(
    [
        "INSERT {conflict} INTO {table} (id, a, b, c) SELECT {x}, {row}.a, {row}.b, {row}.c",
        "UPDATE {conflict} {table} SET a = {row}.a WHERE id = {x}",
        "UPDATE {conflict} {table} SET b = {row}.b + {x}, c = {row}.c WHERE id <> {row}.id",
        "UPDATE {conflict} {table} SET id = {x} WHERE id = {y}",
        "DELETE FROM {table} WHERE id = {row}.id % {x} + 1",
    ]
)
EVENTS = st.sampled_from(["INSERT", "UPDATE", "DELETE"])
UNTOUCHED = """SELECT RAISE(ABORT, 'the row is another one now') WHERE NOT EXISTS (
    SELECT 1 FROM {table} WHERE id IS OLD.id AND a IS OLD.a AND b IS OLD.b AND c IS OLD.c)"""
"""What a BEFORE trigger may not do: to write the row that is to be written or deleted leaves
undefined what becomes of it (https://www.sqlite.org/lang_createtrigger.html)."""


@st.composite
def statements(draw: st.DrawFn, texts: st.SearchStrategy[str], table: str, row: str = "") -> str:
    """One of the texts, filled in."""
    x, y, z = draw(SMALL), draw(SMALL), draw(SMALL)
    conflict = draw(CONFLICTS)
    return draw(texts).format(conflict=conflict, table=table, row=row, x=x, y=y, z=z)


@st.composite
def users_triggers(draw: st.DrawFn, table: str) -> list[tuple[str, bool]]:
    """Triggers that write their own table, each with whether it is older than the agent's."""
    found = list[tuple[str, bool]]()
    for place in range(draw(st.integers(1, 2))):
        event = draw(EVENTS)
        row = "OLD" if event == "DELETE" else draw(st.sampled_from(["NEW", "OLD"]))
        row = "NEW" if event == "INSERT" else row
        when = draw(st.sampled_from(["BEFORE", "AFTER"]))
        body = draw(statements(NESTED, table, row))
        if when == "BEFORE" and event != "INSERT":
            body += f"; {UNTOUCHED.format(table=table)}"
        text = (
            f"CREATE TRIGGER mine{place} {when} {event} ON {table} {GUARD}"
            f" AND {row}.id <= {draw(SMALL)} BEGIN {body}; END"
        )
        found.append((text, draw(st.booleans())))
    return found


class Patience:
    """Ends a statement whose triggers call each other for ever: SQLite takes it back."""

    def __init__(self) -> None:
        self.calls = 0

    def is_over(self) -> bool:
        """Return whether the statements have taken 2,000,000 operations together."""
        self.calls += 1
        return self.calls > 2_000


@examples(12, is_fixed=True)
@given(st.data(), st.sampled_from(sorted(TABLES)), st.booleans())
def test_the_journal_alone_makes_the_same_rows(
    data: st.DataObject,
    table: str,
    recursive: bool,  # noqa: FBT001 hypothesis gives it
) -> None:
    """Whatever the triggers write between the agent's own, nothing is lost or told twice."""
    triggers = data.draw(users_triggers(table))
    writes = data.draw(st.lists(statements(WRITES, table), min_size=1, max_size=8))
    older = [text for text, is_older in triggers if is_older]
    younger = [text for text, is_older in triggers if not is_older]
    replica = made(Path(":memory:"), table, older, younger)
    with closing(replica.client):
        replica.client.execute(f"PRAGMA recursive_triggers = {recursive}")
        replica.client.set_progress_handler(Patience().is_over, 1_000)
        first = f"INSERT INTO {table} (id, a, b) VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)"
        for statement in (first, *writes):
            try:
                replica.client.execute(statement)
            except sqlite3.Error as error:
                assert "slackwater" not in str(error)  # noqa: PT017 the others are the user's own
        check(replica)
