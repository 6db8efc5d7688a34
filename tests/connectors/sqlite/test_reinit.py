"""A database is emptied for a new start: what only it has is saved, and nothing is given twice."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.agent.new_start import NewStart
from connectors.agent.own_topic import OwnTopic
from connectors.sqlite.store import SqliteStore
from streaming.core.delivery.consumer import ApplyBatch
from streaming.core.model.change import Change
from streaming.core.model.csn import CsnParts, format_csn
from streaming.core.model.ruv import Ruv
from tests.connectors.sqlite.sqlite_replica import CREATE_ITEMS, ITEMS, RID, Replica, make

LATE_S = 4_000_000_000
"""The time of a CSN in the topic that is far ahead of the clock."""


def start(csn: str = "", epoch: int = 0, opno: int = 0) -> NewStart:
    """Where the replica starts, by what its own topic holds."""
    past = OwnTopic("old session")
    past.csn, past.epoch, past.opno = csn, epoch, opno
    return NewStart(past, 9, 5)


def emptied(replica: Replica, path: Path, known: NewStart, *images: str) -> SqliteStore:
    """The database after reinit, by a hub that has these images."""
    store = replica.store()
    store.reinit(known, lambda _table, _key, image: image in images, path)
    return store


def test_rows_that_the_hub_does_not_have_so_are_saved(replica: Replica, tmp_path: Path) -> None:
    """They would be gone for ever: nobody else has them."""
    replica.client.execute("INSERT INTO items VALUES (1, 'same', '2.5'), (2, 'own', NULL)")
    path = tmp_path / "saved.jsonl"

    emptied(replica, path, start(), '{"id":"1","name":"same","price":"2.5"}')

    saved = [json.loads(line) for line in path.read_text().splitlines()]
    row = {"id": 2, "name": "own", "price": None}
    assert saved == [{"table": "items", "key": {"id": "2"}, "row": row}]
    assert replica.rows() == []
    assert replica.records() == []


def test_columns_that_are_not_configured_are_saved_too(replica: Replica, tmp_path: Path) -> None:
    """The hub never had them, so a row that is equal in all others is not the whole row."""
    replica.client.execute("ALTER TABLE items ADD COLUMN photo BLOB")
    replica.client.execute("INSERT INTO items VALUES (1, 'n', NULL, x'00ff')")
    path = tmp_path / "saved.jsonl"

    emptied(replica, path, start(), '{"id":"1","name":"n","price":null}')

    row = {"id": 1, "name": "n", "price": None, "photo": {"blob": "AP8="}}
    assert json.loads(path.read_text())["row"] == row


def test_without_such_a_row_there_is_no_file(replica: Replica, tmp_path: Path) -> None:
    """An empty file would make somebody look for what was lost."""
    emptied(replica, tmp_path / "saved.jsonl", start())

    assert not (tmp_path / "saved.jsonl").exists()


def test_rows_are_not_deleted_if_they_cannot_be_saved(replica: Replica, tmp_path: Path) -> None:
    """The disk is full, or the file is there already: nothing has happened."""
    replica.client.execute("INSERT INTO items VALUES (1, 'own', NULL)")
    path = tmp_path / "saved.jsonl"
    path.write_text("of an earlier run")

    with pytest.raises(FileExistsError):
        emptied(replica, path, start())

    assert len(replica.rows()) == len(replica.changes()) == 1


def test_the_next_hello_says_so_until_a_batch_is_applied(replica: Replica, tmp_path: Path) -> None:
    """An agent that dies before that must not look like one that has everything."""
    store = emptied(replica, tmp_path / "saved", start(epoch=30))

    first = store.start_session("s1", "5f00", lost=True)
    store = replica.store()
    second = store.start_session("s2", None, lost=False)
    position = replace(store.position, last=3, covers=3, generation=1, ruv=Ruv("g"))
    store.apply(ApplyBatch(position, 3, ()), 6, 0)
    third = store.start_session("s3", None, lost=False)

    assert (first.reinit, first.own, first.lost, first.covers) == (True, None, False, 0)
    assert first.epoch == 36
    assert second.reinit is True
    assert (third.reinit, third.covers) == (None, 3)
    assert store.compared_up_to()[0] == 9


def test_the_next_hello_says_so_until_a_change_is_published(
    replica: Replica, tmp_path: Path
) -> None:
    """A hub that has not read the change would start the replica and leave its row there."""
    store = emptied(replica, tmp_path / "saved", start(epoch=30))
    store.start_session("s1", None, lost=False)
    replica.client.execute("INSERT INTO items VALUES (1, 'new', NULL)")
    second = store.start_session("s2", None, lost=False)
    (change,) = store.unpublished(10, 10_000)
    store.mark_published(change)
    third = store.start_session("s3", store.published_own(), lost=False)

    assert second.reinit is True
    assert isinstance(change.record, Change)
    assert (third.reinit, third.own, third.covers) == (None, change.record.csn, 0)


def test_no_csn_epoch_or_opno_is_given_twice(replica: Replica, tmp_path: Path) -> None:
    """The hub takes a CSN that it knows with other content for a mistake of the agent."""
    csn = format_csn(CsnParts(LATE_S, 7, RID, 0))

    store = emptied(replica, tmp_path / "saved", start(csn, epoch=30, opno=12))
    replica.client.execute("INSERT INTO items (id) VALUES (1)")

    (change,) = replica.changes()
    assert change.csn > csn
    assert (change.epoch, change.opno) == (37, 13)
    assert store.epoch == 37
    assert [entry.record for entry in store.unpublished(10, 10**6)] == [change]


def test_what_was_trimmed_is_forgotten_and_new_changes_are_published(
    replica: Replica, tmp_path: Path
) -> None:
    """The hello has no own CSN, and the journal's ids, which start anew, are not published yet."""
    store = replica.store()
    replica.client.execute("INSERT INTO items VALUES (1, 'old', NULL)")
    store.connection.execute("UPDATE _slackwater_position SET published = 1, trimmed_csn = 'f'")

    store.reinit(start(), lambda *_: True, tmp_path / "saved.jsonl")
    replica.client.execute("INSERT INTO items VALUES (2, 'new', NULL)")

    assert store.published_own() is None
    (record,) = replica.records()
    assert isinstance(record, Change)
    assert json.loads(record.key) == {"id": "2"}


def test_a_file_from_before_that_is_put_back_says_so_by_its_epoch(
    replica: Replica, tmp_path: Path
) -> None:
    """By that the hub knows again what it lists as not replicated; the file lists it itself."""
    store = replica.store()
    store.start_session("s1", None, lost=False)
    position = replace(store.position, last=3, covers=3, generation=1, ruv=Ruv("g"))
    store.apply(ApplyBatch(position, 3, ()), 6, 0)
    replica.client.execute("INSERT INTO items VALUES (1, 'n', 'no price')")
    store.mark_published(store.unpublished(10, 10_000)[-1])
    backup = tmp_path / "backup.sqlite"
    with closing(sqlite3.connect(backup)) as copy:
        replica.client.backup(copy)

    emptied(replica, tmp_path / "saved", start(epoch=store.epoch))
    anew = replica.store().start_session("s2", None, lost=False)
    put_back = SqliteStore.open(backup, RID, replica.tables)
    hello = put_back.start_session("s3", store.published_own(), lost=False)

    assert (anew.reinit, hello.reinit) == (True, None)
    assert hello.epoch < anew.epoch
    assert put_back.kept_rows().uncarried == 1
    put_back.close()


def test_a_new_start_on_another_file_is_above_all_that_the_lost_one_may_have_applied(
    replica: Replica, tmp_path: Path
) -> None:
    """No topic holds what it had not acknowledged; put back, its rows are listed again."""
    store = replica.store()
    store.start_session("s1", None, lost=False)
    acknowledged = store.epoch
    for covers in (3, 4, 5):
        position = replace(store.position, last=covers, covers=covers, generation=1, ruv=Ruv("g"))
        store.apply(ApplyBatch(position, covers, ()), covers, 0)
    other = make(tmp_path / "other.sqlite", {CREATE_ITEMS: ITEMS})

    anew = emptied(other, tmp_path / "saved", start(epoch=acknowledged))
    first = anew.start_session("s2", None, lost=False)
    put_back = replica.store().start_session("s3", None, lost=False)

    assert put_back.epoch < first.epoch < anew.epoch
    anew.close()
    other.client.close()
