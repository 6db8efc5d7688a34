"""What was written under a key that no replica can take can be mended and deleted."""

from contextlib import closing
from pathlib import Path

import pytest

from connectors import wire
from connectors.agent import loop
from connectors.agent.loop import Agent
from streaming.core.model.change import Change, Op
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Commit, Goodbye, Hello, Record
from tests.connectors.agent.test_loop import MemoryTopics
from tests.connectors.sqlite.sqlite_replica import RID, Replica, make

PARENTS = Table("parents", ("id",), {"id": ColumnType.INT64})
CHILDREN = Table("children", ("k",), {"k": ColumnType.TEXT, "parent": ColumnType.INT64})
SCHEMA = {
    "CREATE TABLE parents (id INTEGER PRIMARY KEY)": PARENTS,
    "CREATE TABLE children (k TEXT NOT NULL PRIMARY KEY,"
    " parent INTEGER REFERENCES parents (id) ON DELETE CASCADE)": CHILDREN,
}


@pytest.fixture
def family(tmp_path: Path) -> Replica:
    """A parent with two children, one of them under a blob where the key is text."""
    replica = make(tmp_path / "r.db", SCHEMA)
    replica.client.execute("PRAGMA foreign_keys = ON")
    replica.client.execute("INSERT INTO parents VALUES (1)")
    replica.client.execute("INSERT INTO children VALUES ('good', 1), (x'62ff', 1)")
    return replica


def written(replica: Replica, statement: str) -> tuple[list[Change], list[Record]]:
    """What a statement adds to the journal: the deletes that stand alone, and its transaction."""
    before = len(replica.entries())
    replica.client.execute(statement)
    entries = replica.entries()[before:]
    transactions = {entry.transaction for entry in entries}
    assert len(transactions) == 1
    alone, others = list[Change](), list[Record]()
    for entry in entries:
        record = entry.record
        if isinstance(record, Change) and record.prim_csn is None:
            alone.append(record)
        else:
            others.append(record)
    return alone, others


def test_a_key_that_is_mended_takes_no_row_to_quarantine(family: Replica) -> None:
    """The hub ends a transaction with a bad change; the delete of the old key is nobody else's."""
    alone, others = written(family, "UPDATE children SET k = 'mended' WHERE k = x'62ff'")

    assert [(one.op, one.key) for one in alone] == [(Op.DELETE, '{"k":{"blob":"Yv8="}}')]
    insert, commit = others
    assert isinstance(insert, Change)
    assert isinstance(commit, Commit)
    assert (insert.op, insert.key) == (Op.INSERT, '{"k":"mended"}')
    assert insert.prim_csn == commit.prim_csn


def test_a_parent_is_deleted_everywhere_though_a_child_was_never_carried(family: Replica) -> None:
    """What the foreign key deletes with it is one transaction."""
    alone, others = written(family, "DELETE FROM parents WHERE id = 1")

    assert [one.table for one in alone] == ["children"]
    assert [one.row for one in others if isinstance(one, Change)] == [
        ("children", '{"k":"good"}'),
        ("parents", '{"id":"1"}'),
    ]


def test_the_journal_finds_what_was_published_so(family: Replica) -> None:
    """The comparison with the own topic must not take it for a change that the database lacks."""
    (alone,), _ = written(family, "UPDATE children SET k = 'mended' WHERE k = x'62ff'")

    assert family.store().find(alone) == family.entries()[-3].id


def test_a_transaction_that_was_cut_off_before_such_a_delete_is_published_to_its_end(
    family: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rest belongs to the session that began it: the hello of the next one would abort it."""
    topics = MemoryTopics()
    with closing(family.store()) as store:
        first = Agent(RID, store, topics, topics)
        first.start()
        first.run_once()
        family.client.execute("DELETE FROM parents WHERE id = 1")
        monkeypatch.setattr(loop, "PUBLISH_ROWS", 1)
        assert first.publish()
        begun = len(topics.changes)

        Agent(RID, store, topics, topics).start()

    behind = [wire.decode(value) for value in topics.changes[begun:]]
    sent = [(session == first.session, type(record)) for session, record in behind]
    assert sent == [
        *((True, kind) for kind in (Goodbye, Change, Change, Commit)),
        (False, Hello),
    ]
